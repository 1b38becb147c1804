//! A DVE model as a system.
//!
//! In: a program and the engine that runs it. Out: [`System`]. What stays true: the engine computes successors and
//! nothing else; assertions, messages of faults and names are the same whatever the engine.
//!
//! Steps are not reversible: an effect overwrites the previous value.

use crate::code::{ExprCode, NodeId};
use crate::dump::Dump;
use crate::engine::{Engine, Taken};
use crate::facts::DveFacts;
use crate::interpreter::Interpreter;
use crate::ir::{Accept, Program, TextPlace, Timing};
use crate::names::Names;
use crate::reference::{self, Outcome};
use deltamark_core::{
    Action, BLOCK, Batch, Block, Components, Control, Describe, Facts, Fired, Observe, Portable, Scratch, Sleep, Slot,
    States, Stop, System, Widen, Width, sleep,
};

/// A DVE model that can be run.
pub struct DveSystem {
    pub(crate) program: Program,
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) names: Names,
    initial: Vec<Slot>,
    assertions: Option<Assertions>,
}

/// Assertions by process and location.
struct Assertions {
    code: ExprCode,
    by_location: Vec<Vec<Vec<(NodeId, TextPlace)>>>,
}

/// Working memory of one thread.
pub(crate) struct DveWorkspace {
    /// The engine's own.
    pub engine: Scratch,
    faults: Vec<Action>,
    block_faults: Vec<(usize, Action)>,
    pub values: Vec<i32>,
}

impl DveSystem {
    /// The model, run by the interpreter.
    pub fn new(program: Program) -> Self {
        let engine = Box::new(Interpreter::new(&program));
        Self::with_engine(program, engine)
    }

    /// The model, run by this engine, which was made for it.
    pub fn with_engine(program: Program, engine: Box<dyn Engine>) -> Self {
        Self::under(program, engine, &Control::new()).expect("nothing stops it")
    }

    /// The same, unless `control` stops it.
    pub fn under(program: Program, engine: Box<dyn Engine>, control: &Control) -> Result<Self, Stop> {
        control.check()?;
        let names = Names::new(&program, control)?;
        let mut initial = vec![0; program.slots];
        for cell in program.state_cells() {
            cell.write(&mut initial, cell.initial);
        }
        let assertions = program.has_asserts.then(|| Assertions::new(&program));
        Ok(DveSystem { names, program, engine, initial, assertions })
    }

    /// The intermediate form.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The name of the engine that runs it.
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// The same model with the name of its file, for the positions in traces.
    pub fn in_file(mut self, file: &str) -> Self {
        self.names.file = Some(file.into());
        self
    }

    /// The message of a step that an engine reports as a fault, given the cells of its source.
    #[cold]
    fn fault(&self, cells: &[i32], action: Action) -> String {
        match reference::step(&self.program, cells, action.0) {
            Outcome::Fault(why) => why,
            other => panic!("engines agree: the {} calls {action:?} a fault, but it is {other:?}", self.engine.name()),
        }
    }

    /// Appends the faults of one source. There may be as many as there are steps, so its cells are unpacked once,
    /// and their messages are counted as memory of the process.
    #[cold]
    fn faults(&self, source: &[Slot], actions: impl Iterator<Item = Action>, out: &mut Batch) {
        let cells = reference::unpack(&self.program, source);
        for action in actions {
            if out.is_stopped() {
                break;
            }
            out.fault(Some(action), self.fault(&cells, action));
        }
    }

    /// Expands a block by `steps`, and reports assertions and faults.
    #[inline]
    fn expand_with(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        out: &mut Batch,
        steps: impl FnOnce(&Program, &mut Scratch, &mut Batch, &mut Vec<(usize, Action)>),
    ) {
        let work = scratch.get::<DveWorkspace>();
        if self.assertions.is_some() {
            for (index, state) in block.states().iter().enumerate() {
                out.begin(index);
                self.assert(&mut work.values, state, out);
            }
        }
        steps(&self.program, &mut work.engine, out, &mut work.block_faults);
        for faults in work.block_faults.chunk_by(|(one, _), (other, _)| one == other) {
            out.begin(faults[0].0);
            self.faults(block.state(faults[0].0), faults.iter().map(|&(_, action)| action), out);
        }
        work.block_faults.clear();
    }

    /// Reports the assertions that fail in a state.
    fn assert(&self, values: &mut Vec<i32>, state: &[Slot], out: &mut Batch) {
        let Some(assertions) = &self.assertions else { return };
        values.clear();
        values.extend(self.program.state_cells().iter().map(|cell| cell.read(state)));
        for (process, by_location) in self.program.processes.iter().zip(&assertions.by_location) {
            let at = values[process.location.0 as usize] as usize;
            for &(condition, place) in &by_location[at] {
                let why = match assertions.code.holds(condition, values) {
                    Ok(true) => continue,
                    Ok(false) => "does not hold",
                    Err(_) => "divides by zero or goes outside of an array",
                };
                let location = &process.locations[at].name;
                out.fault(
                    None,
                    format!("the assertion of {} for state `{location}` in line {} {why}", process.name, place.line),
                );
            }
        }
    }
}

impl Assertions {
    fn new(program: &Program) -> Self {
        let mut code = ExprCode::new(program);
        let by_location = program.processes.iter().map(|process| {
            let locations = process.locations.iter().map(|location| {
                location.asserts.iter().map(|&(expr, place)| (code.compile(program, expr), place)).collect()
            });
            locations.collect()
        });
        let by_location = by_location.collect();
        Assertions { code, by_location }
    }
}

impl System for DveSystem {
    fn width(&self) -> Width {
        Width::Fixed(self.program.slots)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(DveWorkspace {
            engine: self.engine.scratch(&self.program),
            faults: Vec::new(),
            block_faults: Vec::new(),
            values: Vec::new(),
        })
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        out.push(Action(0), &self.initial);
        Ok(())
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let work = scratch.get::<DveWorkspace>();
        self.assert(&mut work.values, source, out);
        self.engine.successors(&self.program, &mut work.engine, source, out, &mut work.faults);
        if !work.faults.is_empty() {
            self.faults(source, work.faults.drain(..), out);
        }
        Ok(())
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.expand_with(scratch, block, out, |program, scratch, out, faults| {
            self.engine.expand(program, scratch, block, out, faults);
        });
        Ok(())
    }

    fn expand_awake(
        &self,
        scratch: &mut Scratch,
        block: &Block,
        sleep: &Sleep,
        arrivals: &[Action],
        out: &mut Batch,
    ) -> Result<(), Widen> {
        let Sleep::Rows(rows) = sleep else {
            return sleep::expand_then_skip(self, scratch, block, sleep, arrivals, out);
        };
        let mut asleep = [&[][..]; BLOCK];
        asleep.iter_mut().zip(arrivals).for_each(|(row, &arrival)| *row = rows.row(arrival));
        self.expand_with(scratch, block, out, |program, scratch, out, faults| {
            self.engine.expand_awake(program, scratch, block, &asleep[..arrivals.len()], out, faults);
        });
        Ok(())
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        let work = scratch.get::<DveWorkspace>();
        target.resize(self.program.slots, 0);
        Ok(match self.engine.fire(&self.program, &mut work.engine, source, action, target) {
            Taken::Done => Fired::Done,
            Taken::Disabled => Fired::Disabled,
            Taken::Fault => Fired::Fault(self.fault(&reference::unpack(&self.program, source), action)),
        })
    }

    fn fire_each(&self, scratch: &mut Scratch, sources: &States, actions: &[Action], targets: &mut States) {
        let work = scratch.get::<DveWorkspace>();
        for (source, &action) in sources.iter().zip(actions) {
            let target = targets.push_with(self.program.slots);
            let taken = self.engine.fire(&self.program, &mut work.engine, source, action, target);
            assert_eq!(taken, Taken::Done, "a step that was taken can be taken again");
        }
    }

    fn action_count(&self) -> Option<u32> {
        Some(self.program.action_count)
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn dump(&self) -> Option<String> {
        Some(Dump(&self.program).to_string())
    }

    fn facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(DveFacts::new(self, control)?.map(|facts| Box::new(facts) as Box<dyn Facts + '_>))
    }

    fn refined_facts(&self, control: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(DveFacts::refined(self, control)?.map(|facts| Box::new(facts) as Box<dyn Facts + '_>))
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl DveSystem {
    /// What the model contains that affects neither steps nor verdicts, one sentence each: acceptance conditions
    /// of infinite runs, and what a synchronous system ignores.
    pub fn unasked(&self) -> Vec<String> {
        let program = &self.program;
        let mut sentences = Vec::new();
        if let (Some(monitor), Some(Err(why))) = (&program.monitor, self.property_process()) {
            let name = &monitor.process.name;
            sentences.push(format!("the property process `{name}` is not checked: {why}"));
        }
        for process in program.processes.iter().filter(|process| process.accept != Accept::None) {
            let name = &process.name;
            sentences.push(format!(
                "the acceptance condition of process `{name}` is not checked, because it is no property process; `--ltl` \
                 asks about infinite paths"
            ));
        }
        let committed = program.processes.iter().flat_map(|process| &process.locations).any(|place| place.committed);
        if program.timing == Timing::Synchronous && (committed || !program.channels.is_empty()) {
            sentences.push("in a synchronous system channels and committed locations mean nothing".into());
        }
        sentences
    }
}

impl Components for DveSystem {
    fn boundaries(&self, _: &[Slot], out: &mut Vec<usize>) {
        out.extend_from_slice(&self.program.boundaries);
    }
}
