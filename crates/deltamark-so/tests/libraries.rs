//! Shared libraries, built here with the machine's C compiler; skipped if there is none.

use deltamark_core::{Action, Batch, Describe, Observe, Scratch, System, Width};
use deltamark_so::{LibrarySystem, load};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a library from C; `None` if there is no compiler.
fn build(name: &str, code: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries");
    std::fs::create_dir_all(&folder).expect("a folder for libraries");
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&source, code).expect("a file to compile");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-I"]).arg(here.join("include"));
    match cc.arg("-o").arg(&library).arg(&source).output() {
        Ok(output) => {
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            Some(library)
        }
        Err(_) => {
            deltamark_testkit::corpus::skipped(name, "there is no C compiler `cc`");
            None
        }
    }
}

fn ring() -> Option<PathBuf> {
    build("ring", include_str!("../examples/ring.c"))
}

fn parameters(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn refused(path: &Path, list: &[(&str, &str)]) -> String {
    match load(path, &parameters(list)) {
        Ok(_) => "loaded".into(),
        Err(diagnostics) => diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn the_example_is_a_system() {
    let Some(path) = ring() else { return };
    let system = load(&path, &[]).expect("the example loads");
    deltamark_testkit::check_system(&system);
    deltamark_testkit::check_portable(|| load(&path, &[]).expect("the example loads"));
    assert_eq!(system.width(), Width::Fixed(2));
    let mut batch = Batch::new(system.width());
    system.successors(&mut Scratch::none(), &[3, 5], &mut batch).expect("its layout is known");
    let targets: Vec<_> = (0..batch.len()).map(|index| batch.target(index).to_vec()).collect();
    assert_eq!(targets, [[0, 5], [3, 13]]);
    assert_eq!(system.describe().action(&[3, 5], Action(1)), "take a break");
    assert_eq!(system.describe().action(&[3, 13], Action(1)), "come back");
    let shown: Vec<_> = system.state(&[3, 5]).iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(shown, ["holder=3", "on_break=5"]);
    let on_break = system.resolve("on_break").expect("a variable");
    assert_eq!(system.read(&mut Scratch::none(), &[3, 5], on_break), 5);
}

#[test]
fn parameters_reach_the_library() {
    let Some(path) = ring() else { return };
    // A copy, because a library is loaded once and its parameters are its own.
    let copy = path.with_file_name("ring-6.so");
    std::fs::copy(&path, &copy).expect("a copy");
    let system = load(&copy, &parameters(&[("N", "6")])).expect("six processes");
    let mut batch = Batch::new(system.width());
    system.successors(&mut Scratch::none(), &[5, 0], &mut batch).expect("its layout is known");
    assert_eq!(batch.target(0), [0, 0]);
    assert!(refused(&copy, &[("N", "x")]).ends_with("gives no model: N is a number from 1 to 24"));
    assert!(refused(&copy, &[("M", "3")]).ends_with("gives no model: the only parameter is N"));
}

/// A library around a description.
fn code(fields: &str) -> String {
    format!(
        "#include \"deltamark.h\"\n#include <string.h>\n\
         static void initial(void *self, deltamark_out *out) {{ uint32_t s[2] = {{0, 0}}; out->step(out, s, 1, 0); }}\n\
         static void silent(void *self, deltamark_out *out) {{ }}\n\
         static void wide(void *self, deltamark_out *out) {{ uint32_t s[2] = {{0, 0}}; out->step(out, s, 2, 0); }}\n\
         static void successors(void *self, const uint32_t *s, size_t w, deltamark_out *out) {{\n\
           uint32_t n[8] = {{0}}; for (size_t i = 0; i < w; i++) n[i] = s[i];\n\
           if (n[0] == 3) {{ out->fault(out, \"three is too much\"); out->step(out, n, 2, 0); out->step(out, 0, 1, 0); return; }}\n\
           n[0]++; out->step(out, n, 1, 0); }}\n\
         static void grow(void *self, const uint32_t *s, size_t w, deltamark_out *out) {{\n\
           uint32_t n[8] = {{0}}; for (size_t i = 0; i < w; i++) n[i] = s[i];\n\
           if (w < 4) {{ n[w] = 7; out->step(out, n, w + 1, \"grow\"); }} if (w > 0) out->step(out, n, w - 1, \"shrink\"); }}\n\
         static int64_t value(void *self, const uint32_t *s, size_t w, uint32_t v) {{ return s[0]; }}\n\
         static const char *const names[] = {{\"x\", \"x\", 0}};\n\
         const void *const used[] = {{initial, silent, wide, successors, grow, value, names}};\n\
         static const deltamark_description model = {{ {fields} }};\n\
         const deltamark_description *deltamark_model(const deltamark_parameter *p, size_t n, const char **e) {{ return &model; }}\n"
    )
}

#[test]
fn libraries_that_do_not_keep_to_the_interface_are_refused() {
    let good = ".version = 1, .width = 1, .initial = initial, .successors = successors";
    let cases = [
        ("fine", code(good), "loaded"),
        ("no-entry", "int x;".into(), "does not export `deltamark_model`"),
        ("no-model", "#include \"deltamark.h\"\nconst deltamark_description *deltamark_model(const deltamark_parameter *p, size_t n, const char **e) { return 0; }".into(), "gives no model: it does not say why"),
        ("version", code(&good.replace("version = 1", "version = 7")), "was built for version 7 of the interface, and this is version 1"),
        ("narrow", code(&good.replace("width = 1", "width = 0")), "says that its states have 0 slots; 1 to 65536 can be"),
        ("vast", code(&good.replace("width = 1", "width = 70000")), "says that its states have 70000 slots; 1 to 65536 can be"),
        ("no-initial", code(".version = 1, .width = 1, .successors = successors"), "lacks the function `initial`"),
        ("no-successors", code(".version = 1, .width = 1, .initial = initial"), "lacks the function `successors`"),
        ("no-state", code(&good.replace("= initial", "= silent")), "gives no initial state"),
        ("wrong-state", code(&good.replace("= initial", "= wide")), "is wrong: the library gave a state of 2 slots, where all have 1"),
        ("flags", code(&format!("{good}, .flags = 6")), "sets flags that do not exist: 0x6"),
        ("unnamed", code(&format!("{good}, .variables = 2, .value = value")), "has variables without names"),
        ("twice", code(&format!("{good}, .variables = 2, .names = names, .value = value")), "has two variables of the name `x`"),
        ("valueless", code(&format!("{good}, .variables = 1, .names = names")), "lacks the function `value`"),
        ("many", code(&format!("{good}, .variables = 4000000000, .names = names, .value = value")), "says that it has 4000000000 variables; at most 1048576 can be"),
    ];
    for (name, code, message) in cases {
        let Some(path) = build(name, &code) else { return };
        let found = refused(&path, &[]);
        assert!(found.ends_with(message), "{name}: {found}");
    }
    assert!(refused(Path::new("no/such.so"), &[]).starts_with("cannot read `no/such.so`"));
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(refused(&text, &[]).contains("cannot be loaded as a shared library"));
}

fn system(name: &str, fields: &str) -> Option<LibrarySystem> {
    Some(load(&build(name, &code(fields))?, &[]).expect("it loads"))
}

#[test]
fn wrong_steps_are_faults_that_can_be_repeated() {
    let fields =
        ".version = 1, .width = 1, .initial = initial, .successors = successors, .flags = DELTAMARK_ONE_THREAD";
    let Some(system) = system("faults", fields) else { return };
    deltamark_testkit::check_system(&system);
    let mut batch = Batch::new(system.width());
    system.successors(&mut Scratch::none(), &[3], &mut batch).expect("its layout is known");
    let faults: Vec<_> = batch.faults().iter().map(|fault| fault.message.as_str()).collect();
    let wrong = "the library gave a state of 2 slots, where all have 1";
    assert_eq!(faults, ["three is too much", wrong, "the library gave a null pointer for a state"]);
    let fired = system.fire(&mut Scratch::none(), &[3], Action(1), &mut Vec::new());
    assert_eq!(fired, Ok(deltamark_core::Fired::Fault(wrong.into())));
    assert_eq!(system.state(&[3]), [("slot 0".to_string(), deltamark_core::Value::Int(3))]);
}

#[test]
fn states_may_differ_in_length() {
    let fields = ".version = 1, .width = DELTAMARK_VARIES, .initial = initial, .successors = grow";
    let Some(system) = system("varies", fields) else { return };
    assert_eq!(system.width(), Width::Varies);
    deltamark_testkit::check_system(&system);
}
