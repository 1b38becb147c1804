//! From Cranelift's instructions to machine code.
//!
//! In: parts of locations. Out: functions that can be called. What stays true: memory is writable or executable,
//! never both (`cranelift-jit` ensures it); functions do not move until the compiler is dropped.

use super::facts::NativeFacts;
use super::function::{self, Expand, Fire, LocationPart};
use crate::ir::Program;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Type};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, isa::TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleError, default_libcall_names};
use std::time::{Duration, Instant};

/// Emits the body of a function.
type Writer = for<'f> fn(&Program, &NativeFacts, FunctionBuilder<'f>, LocationPart) -> FunctionBuilder<'f>;

/// A kind of function: its parameters, its result, and its emitter.
struct FunctionKind {
    parameters: [Type; 3],
    result: Type,
    write: Writer,
}

const EXPAND: FunctionKind = FunctionKind { parameters: [I64, I64, I64], result: I64, write: function::expand };
const FIRE: FunctionKind = FunctionKind { parameters: [I64, I64, I32], result: I32, write: function::fire };

/// Makes machine code.
pub(super) struct Compiler {
    /// `None` only while it is dropped.
    module: Option<JITModule>,
    config: TargetFrontendConfig,
    context: Context,
    builder: FunctionBuilderContext,
    /// The time spent so far.
    pub spent: Duration,
    /// The number of functions compiled.
    pub functions: u32,
    /// Whether compilation failed, and no more is attempted.
    pub failed: bool,
}

impl Compiler {
    /// A compiler for this machine; why there is none otherwise.
    pub fn new() -> Result<Self, String> {
        if size_of::<*const u8>() != 8 {
            return Err("native code is made for 64-bit machines only".into());
        }
        let mut flags = settings::builder();
        for (name, value) in [("opt_level", "speed"), ("enable_verifier", "false"), ("is_pic", "false")] {
            flags.set(name, value).map_err(|error| error.to_string())?;
        }
        let isa = cranelift_native::builder().map_err(str::to_string)?;
        let isa = isa.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())?;
        let config = isa.frontend_config();
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        Ok(Compiler {
            context: module.make_context(),
            module: Some(module),
            config,
            builder: FunctionBuilderContext::new(),
            spent: Duration::ZERO,
            functions: 0,
            failed: false,
        })
    }

    /// The functions that expand these parts; `None` if the run is `stopped` before all are made.
    pub fn expand(
        &mut self,
        program: &Program,
        facts: &NativeFacts,
        parts: &[LocationPart],
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Expand>>, String> {
        let Some(addresses) = self.compile(program, facts, parts, &EXPAND, stopped)? else { return Ok(None) };
        // SAFETY: the functions were written with the parameters and the result of `Expand`, for the calling
        // convention of C on this machine.
        let function = |address| unsafe { std::mem::transmute::<*const u8, Expand>(address) };
        Ok(Some(addresses.into_iter().map(function).collect()))
    }

    /// The functions that fire these parts.
    pub fn fire(
        &mut self,
        program: &Program,
        facts: &NativeFacts,
        parts: &[LocationPart],
    ) -> Result<Vec<Fire>, String> {
        let addresses = self.compile(program, facts, parts, &FIRE, &mut || false)?.unwrap_or_default();
        // SAFETY: as above, for `Fire`.
        Ok(addresses.into_iter().map(|address| unsafe { std::mem::transmute::<*const u8, Fire>(address) }).collect())
    }

    fn compile(
        &mut self,
        program: &Program,
        facts: &NativeFacts,
        parts: &[LocationPart],
        kind: &FunctionKind,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<*const u8>>, String> {
        let started = Instant::now();
        let made = self.define_all(program, facts, parts, kind, stopped).map_err(|error| error.to_string());
        self.spent += started.elapsed();
        self.failed |= made.is_err();
        self.functions += made.as_ref().map_or(0, |made| made.as_ref().map_or(0, Vec::len)) as u32;
        made
    }

    fn define_all(
        &mut self,
        program: &Program,
        facts: &NativeFacts,
        parts: &[LocationPart],
        kind: &FunctionKind,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<*const u8>>, Box<ModuleError>> {
        let Compiler { module: Some(module), config, context, builder, .. } = self else {
            unreachable!("there is a module until the compiler is dropped");
        };
        let mut ids: Vec<FuncId> = Vec::with_capacity(parts.len());
        for &part in parts {
            // Functions defined before are kept, and never called.
            if stopped() {
                return Ok(None);
            }
            let mut signature = module.make_signature();
            signature.params.extend(kind.parameters.map(AbiParam::new));
            signature.returns.push(AbiParam::new(kind.result));
            let id = module.declare_anonymous_function(&signature)?;
            context.func.signature = signature;
            let written = (kind.write)(program, facts, FunctionBuilder::new(&mut context.func, builder), part);
            written.finalize(*config);
            module.define_function(id, context)?;
            module.clear_context(context);
            ids.push(id);
        }
        module.finalize_definitions()?;
        Ok(Some(ids.into_iter().map(|id| module.get_finalized_function(id)).collect()))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the engine owns the compiler and all functions that came from it, and calls them only through
            // a shared reference to itself; when it is dropped, none of them runs or can be called again.
            unsafe { module.free_memory() }
        }
    }
}
