//! Native code does what the interpreter does, block by block and action by action.
#![cfg(feature = "native")]

use deltamark_core::{Action, BLOCK, Batch, Block, Control, Fired, Scratch, Sleep, Slot, StateId, System, Width};
use deltamark_dve::engine::Engine;
use deltamark_dve::native::Native;
use deltamark_dve::{DveSystem, EngineChoice, parse};
use deltamark_testkit::corpus::Corpus;
use std::collections::HashSet;

/// A successor or a fault of a state of a block.
type Found = (usize, Option<Action>, Result<Vec<Slot>, String>, u64);

fn expanded(system: &DveSystem, scratch: &mut Scratch, block: &Block) -> (Vec<Found>, u64) {
    let mut batch = Batch::new(system.width());
    system.expand(scratch, block, &mut batch).expect("the layout is known");
    (found(&batch), batch.moved())
}

fn found(batch: &Batch) -> Vec<Found> {
    let steps = (0..batch.len()).map(|index| {
        (batch.source(index), Some(batch.action(index)), Ok(batch.target(index).to_vec()), batch.hash(index))
    });
    let faults = batch.faults().iter().map(|fault| (fault.source.into(), fault.action, Err(fault.message.clone()), 0));
    let mut all: Vec<Found> = steps.chain(faults).collect();
    all.sort();
    all
}

/// Compares the two engines with sleep sets as if the states of a block had been reached by arbitrary actions.
fn compare_awake(
    name: &str,
    oracle: (&DveSystem, &mut Scratch),
    native: (&DveSystem, &mut Scratch),
    sleep: &Sleep,
    block: &Block,
) {
    let count = native.0.action_count().unwrap_or(1).max(1);
    let action = |index: usize| {
        if index.is_multiple_of(5) { Action::NONE } else { Action((index * 2_654_435_761) as u32 % count) }
    };
    let start = block.serial().0 as usize;
    let arrivals: Vec<Action> = (0..block.len()).map(|index| action(start * BLOCK + index)).collect();
    let [expected, actual] = [oracle, native].map(|(system, scratch)| {
        let mut batch = Batch::new(system.width());
        system.expand_awake(scratch, block, sleep, &arrivals, &mut batch).expect("the layout is known");
        (found(&batch), batch.moved(), batch.left_out())
    });
    assert_eq!(actual, expected, "{name}");
}

/// Explores a model by both engines at once; returns states and edges.
fn compare(name: &str, text: &str, most: usize) -> (usize, usize) {
    let program = || parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let oracle = DveSystem::run_by(program(), EngineChoice::Interpreter).expect("the interpreter runs everything");
    let native = DveSystem::run_by(program(), EngineChoice::Native).unwrap_or_else(|why| panic!("{name}: {why}"));
    let sleep = Sleep::new(&oracle, None, &Control::new()).expect("no limit");
    let (mut one, mut other) = (oracle.scratch(), native.scratch());
    let mut batch = Batch::new(oracle.width());
    oracle.initial(&mut one, &mut batch).expect("the layout is known");
    let mut known: HashSet<Vec<Slot>> = HashSet::from([batch.target(0).to_vec()]);
    let mut queue = vec![batch.target(0).to_vec()];
    let (mut next, mut edges) = (0, 0);
    while next < queue.len() && next < most {
        let mut block = Block::new(oracle.width());
        for state in &queue[next..(next + BLOCK).min(queue.len())] {
            block.push(StateId::NAMELESS, state);
        }
        next += block.len();
        let (expected, moved) = expanded(&oracle, &mut one, &block);
        let (actual, native_moved) = expanded(&native, &mut other, &block);
        assert_eq!(actual, expected, "{name}");
        assert_eq!(native_moved, moved, "{name}");
        if let Some(sleep) = &sleep {
            compare_awake(name, (&oracle, &mut one), (&native, &mut other), sleep, &block);
        }
        // Some states alone, and their actions one by one; now and then an action that may be disabled.
        let sample = next % 7 == 0 || next < 500;
        for (index, state) in block.states().iter().enumerate().filter(|(index, _)| sample && index % 9 == 0) {
            batch.reset(native.width());
            batch.begin(index);
            native.successors(&mut other, state, &mut batch).expect("the layout is known");
            let of_state: Vec<Found> = expected.iter().filter(|found| found.0 == index).cloned().collect();
            assert_eq!(found(&batch), of_state, "{name}");
            let (mut target, mut native_target) = (Vec::new(), Vec::new());
            let guess = Action((next * 31 + index) as u32 % native.action_count().unwrap_or(1).max(1));
            for action in of_state.iter().filter_map(|found| found.1).chain([guess]) {
                let fired = oracle.fire(&mut one, state, action, &mut target);
                assert_eq!(native.fire(&mut other, state, action, &mut native_target), fired, "{name} {action:?}");
                if fired == Ok(Fired::Done) {
                    assert_eq!(native_target, target, "{name} {action:?}");
                }
            }
        }
        for (_, _, target, _) in expected {
            let Ok(target) = target else { continue };
            edges += 1;
            if known.insert(target.clone()) {
                queue.push(target);
            }
        }
    }
    (queue.len(), edges)
}

fn corpus(test: &str, sizes: std::ops::Range<u64>, most: usize) {
    let Some(corpus) = Corpus::find(test) else { return };
    for row in corpus.expected("dve") {
        let (name, states, edges) = (row.text("model").expect("a name"), row.number("states"), row.number("edges"));
        let (Some(states), Some(edges)) = (states, edges) else { continue };
        if !sizes.contains(&states) {
            continue;
        }
        let text = std::fs::read_to_string(corpus.file("dve", &format!("{name}.dve"))).expect("a model");
        let found = compare(name, &text, most);
        if (states as usize) < most {
            assert_eq!(found, (states as usize, edges as usize), "{name}");
        }
    }
}

#[test]
fn native_code_agrees_with_the_interpreter_on_small_models() {
    corpus("native code on small models", 0..40_000, usize::MAX);
}

#[test]
fn native_code_agrees_with_the_interpreter_at_the_start_of_large_models() {
    corpus("native code on large models", 40_000..u64::MAX, 3_000);
}

#[test]
#[ignore = "long: minutes; part of scripts/long"]
fn native_code_agrees_with_the_interpreter_on_all_models() {
    corpus("native code on all models", 40_000..3_000_000, usize::MAX);
}

/// A model in which every kind of check is omitted or made somewhere: arrays of all shapes, divisions, tables,
/// buffers.
const SHAPES: &str = "
    byte bytes[5] = {1, 2, 3, 4, 5}; int wide[3]; byte small[7]; byte spread[40]; byte i, j = 1; int k = -3;
    const byte table[4] = {3, 1, 0, 2}; channel {byte, int} q[3]; channel c;
    process P { byte own[3]; state s, t, u; init s; trans
      s -> t { effect small[i] = (small[i] + 1) % 3, i = (i + 1) % 5, bytes[i] = (bytes[table[i % 4]] + 1) % 6; },
      t -> s { guard spread[i * 8] == 0; effect spread[i * 8] = 1, wide[table[i % 4] % 3] = k / j; },
      t -> s { guard spread[i * 8] != 0; effect spread[i * 8] = 0, own[j % 3] = 1 - own[j % 3]; },
      s -> u { guard i != 2; sync q!{i + 254, k * 300}; effect j = (j + 1) % 4; },
      u -> s { sync c!bytes[i % 5]; effect k = 0 - k; },
      u -> t { guard wide[j % 3] / (j - 2) == 0; effect k = k % 2 - 1; };
    }
    process R { byte v; int w; state a, b; init a; trans
      a -> b { sync q?{v, w}; effect v = v % 7; },
      b -> a { sync c?v; effect small[v % 7] = (small[v % 7] + 1) % 4; },
      b -> a { guard wide[1] != 0; effect wide[1] = 0, spread[v] = 2; };
    }
    system async;";

#[test]
fn all_shapes_of_arrays_agree() {
    let (states, edges) = compare("shapes", SHAPES, 20_000);
    assert!(states > 1_000 && edges > 1_500, "{states} states, {edges} edges");
}

/// The assigned value (0 if `y` is 0, which it never is in `s`) divides before it is stored in a field that has no
/// 0.
const LOOSE: &str = "
    process P { byte y = 1; byte x = 1; state s, t; init s; trans
      s -> s { effect x = y, x = 6 / x; }, s -> s { effect y = 3 - y; }, s -> t { effect y = 0; }, t -> s { effect y = 1; };
    }
    system async;";

/// Whatever bits a state holds, native code stays within its memory and terminates. Its results are meaningless.
#[test]
fn states_of_any_bits_do_no_harm() {
    states_of_any_bits(&[SHAPES.to_string(), LOOSE.to_string()]);
    let Some(corpus) = Corpus::find("native code on states of any bits") else { return };
    let names = ["leader_filters.1", "synapse.1", "pgm_protocol.1", "extinction.1", "needham.1", "sorter.1"];
    let text = |name| std::fs::read_to_string(corpus.file("dve", &format!("{name}.dve"))).expect("a model");
    states_of_any_bits(&names.map(text));
}

fn states_of_any_bits(texts: &[String]) {
    let mut rng = deltamark_testkit::Rng::new(3);
    for text in texts {
        let program = parse(text.as_bytes()).expect("a model");
        let native = Native::new(&program).expect("it can be compiled");
        let mut scratch = native.scratch(&program);
        let mut batch = Batch::new(Width::Fixed(program.slots));
        let (mut faults, mut target) = (Vec::new(), vec![0; program.slots]);
        for _ in 0..3_000 {
            let state: Vec<Slot> = (0..program.slots).map(|_| rng.below(1 << 32) as Slot).collect();
            batch.reset(Width::Fixed(program.slots));
            native.successors(&program, &mut scratch, &state, &mut batch, &mut faults);
            for action in 0..program.action_count.min(20) {
                native.fire(&program, &mut scratch, &state, Action(action), &mut target);
            }
        }
    }
}

#[test]
fn what_cannot_be_compiled_is_told_and_left_to_the_interpreter() {
    let deep = vec!["x - y"; 450].join(" - ");
    let cases = [
        (
            "process P { state s; init s; trans s -> s {}; } system sync;".to_string(),
            "there is no native code for `system sync`",
        ),
        (
            "channel {byte} q[200]; process P { state s; init s; trans s -> s { sync q!1; }; } system async;"
                .to_string(),
            "the buffer of channel `q` is too large for native code",
        ),
        (
            format!(
                "byte x, y; process P {{ state s; init s; trans s -> s {{ effect x = 1 - x, y = 1 - y; }}, s -> s {{ guard {deep} < 0 - 2; }}; }} system async;"
            ),
            "an expression is nested too deeply for native code",
        ),
        (
            format!(
                "byte x, y, a[2]; process P {{ state s; init s; trans s -> s {{ effect x = 1 - x, y = 1 - y; }}, s -> s {{ effect a[{deep} < 0] = 1; }}; }} system async;"
            ),
            "an expression is nested too deeply for native code",
        ),
        (
            format!(
                "byte x, y, a[2]; channel {{byte}} q[1]; process P {{ state s; init s; trans s -> s {{ effect x = 1 - x, y = 1 - y; }}, s -> s {{ sync q?a[{deep} < 0]; }}; }} system async;"
            ),
            "an expression is nested too deeply for native code",
        ),
    ];
    for (text, message) in cases {
        let Ok(program) = parse(text.as_bytes()) else { panic!("{message}: the model is read") };
        let refused = DveSystem::run_by(program.clone(), EngineChoice::Native).map(|_| ());
        assert_eq!(refused, Err(message.to_string()));
        let system = DveSystem::run_by(program, EngineChoice::Auto).expect("auto always finds an engine");
        assert_eq!(system.engine(), "interpreter");
    }
}

/// A model of 1024 states: two counters and who may count.
const SMALL: &str = "
    byte turn; byte count[2];
    process P { state s, t; init s; trans
      s -> t { effect count[0] = (count[0] + 1) % 16; }, t -> s { effect turn = 1 - turn; };
    }
    process Q { state s; init s; trans s -> s { effect count[1] = (count[1] + 3) % 16; }; }
    system async;";

/// With `auto` the interpreter begins and native code takes over; the results do not change.
#[test]
fn auto_goes_over_to_native_code() {
    let program = parse(SMALL.as_bytes()).expect("a model");
    let native = Native::after(&program, 100).expect("it can be compiled");
    let system = DveSystem::with_engine(program.clone(), Box::new(native));
    let by_auto = deltamark_testkit::explore(&system);
    let by_interpreter = deltamark_testkit::explore(&DveSystem::new(program));
    assert_eq!(by_auto.states.len(), by_interpreter.states.len());
    assert_eq!(by_auto.edges.len(), by_interpreter.edges.len());
}

#[test]
fn several_threads_make_code_and_run_it() {
    let program = parse(SMALL.as_bytes()).expect("a model");
    let system = DveSystem::run_by(program, EngineChoice::Native).expect("it can be compiled");
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| deltamark_testkit::explore(&system).states.len())).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?}");
}

/// States of 20 kB with some hundred steps each: there is room for a few of these at a time.
#[test]
fn wide_states_are_expanded_in_pieces() {
    let mut text = String::from("byte far[20000]; channel c;\n");
    for number in 0..90 {
        let sync = match number % 9 {
            0 => "sync c!;",
            1 => "sync c?;",
            _ => "",
        };
        text += &format!(
            "process P_{number} {{ byte i; state s, t; init s; trans
               s -> t {{ {sync} effect i = i + 1; }}, t -> s {{ guard i < 2; effect far[{number} * 200 + i] = i; }},
               t -> t {{ guard i == 2; effect i = 3 / (i - 2); }}; }}\n"
        );
    }
    let (states, edges) = compare("wide", &(text + "system async;"), 70);
    assert!(states > 1000 && edges > 5000, "{states} {edges}");
}

#[test]
fn there_is_no_code_for_very_many_pairs() {
    let model = |receivers: usize| {
        let mut text = String::from("channel c; process S { state s; init s; trans s -> s { sync c!; }; }\n");
        for number in 0..receivers {
            text += &format!("process R_{number} {{ state s; init s; trans s -> s {{ sync c?; }}; }}\n");
        }
        parse((text + "system async;").as_bytes()).expect("a model")
    };
    assert!(Native::new(&model(256)).is_ok());
    let why = Native::new(&model(257)).err().expect("too many");
    assert!(why.contains("more than 256 receives of one channel, as `c` has"), "{why}");
}
