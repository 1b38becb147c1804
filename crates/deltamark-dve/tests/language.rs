//! The language, feature by feature: each model with its number of states, edges, deadlocks and faults, computed
//! by hand. Every model also satisfies the contract of systems, and agrees step by step with the reference.

use deltamark_core::{Action, Batch, Describe, Observe, Slot, System};
use deltamark_dve::reference::{self, Outcome};
use deltamark_dve::{DveSystem, EngineChoice, parse};
use deltamark_testkit::{check_portable, check_system, explore};

fn system(text: &str) -> DveSystem {
    DveSystem::new(parse(text.as_bytes()).unwrap_or_else(|wrong| panic!("{text}\n{wrong:?}")))
}

/// States, edges, deadlocks, faults: the same by all engines that can run the model.
fn counts(text: &str) -> (usize, usize, usize, usize) {
    let by = |system: DveSystem| {
        check_system(&system);
        let explored = explore(&system);
        agree(&system, &explored.states);
        (explored.states.len(), explored.edges.len(), explored.deadlocks.len(), explored.faults.len())
    };
    let counts = by(system(text));
    check_portable(|| system(text));
    let native = || DveSystem::run_by(parse(text.as_bytes()).expect("it was parsed before"), EngineChoice::Native).ok();
    if let Some(system) = native() {
        assert_eq!(by(system), counts, "by native code: {text}");
        check_portable(|| native().expect("it was compiled before"));
    }
    counts
}

/// The engine and the reference agree on every action in these states.
fn agree(system: &DveSystem, states: &[Vec<Slot>]) {
    let program = system.program();
    let mut scratch = system.scratch();
    for state in states {
        let mut batch = Batch::new(system.width());
        system.successors(&mut scratch, state, &mut batch).expect("no layout widens");
        let mut found: Vec<(u32, Outcome)> = (0..batch.len())
            .map(|index| (batch.action(index).0, Outcome::Done(reference::unpack(program, batch.target(index)))))
            .collect();
        let faults =
            batch.faults().iter().filter_map(|fault| Some((fault.action?.0, Outcome::Fault(fault.message.clone()))));
        found.extend(faults);
        found.sort_by_key(|(action, _)| *action);
        let values = reference::unpack(program, state);
        let all = (0..program.action_count).map(|action| (action, reference::step(program, &values, action)));
        let expected: Vec<(u32, Outcome)> = all.filter(|(_, outcome)| *outcome != Outcome::Disabled).collect();
        assert_eq!(found, expected);
    }
}

/// The faults of all reachable states, each once.
fn faults(text: &str) -> Vec<String> {
    let system = system(text);
    let explored = explore(&system);
    let mut found = Vec::new();
    for state in &explored.states {
        let mut batch = Batch::new(system.width());
        system.successors(&mut system.scratch(), state, &mut batch).expect("no layout widens");
        found.extend(batch.faults().iter().map(|fault| fault.message.clone()));
    }
    found.sort();
    found.dedup();
    found
}

/// The value of `x` after the one step of a model with this effect.
fn after(declarations: &str, effect: &str) -> i64 {
    let text = format!(
        "int x; {declarations} process P {{ state s, t; init s; trans s -> t {{ effect {effect}; }}; }} system async;"
    );
    let system = system(&text);
    let explored = explore(&system);
    assert_eq!(explored.states.len(), 2, "{text}: {:?}", faults(&text));
    let observable = system.resolve("x").expect("x");
    system.read(&mut system.scratch(), &explored.states[1], observable)
}

/// The example of the language's reference: 5 states and 5 transitions.
#[test]
fn a_handshake_with_a_value() {
    let text = "byte turn = 0;  channel c;
        process A { byte v; state p, q; init p;
          trans p -> q { guard turn == 0; sync c!v+1; effect v = (v+1)%2; },
                q -> p { effect turn = 0; }; }
        process B { byte w[2]; state r; init r;
          trans r -> r { sync c?w[0]; effect w[1] = w[0], turn = 1; }; }
        system async;";
    assert_eq!(counts(text), (5, 5, 0, 0));
    let system = system(text);
    let explored = explore(&system);
    let read = |name: &str| {
        let observable = system.resolve(name).unwrap_or_else(|| panic!("{name}"));
        system.read(&mut system.scratch(), &explored.states[1], observable)
    };
    let names = ["turn", "A.v", "A->v", "B.w[0]", "B.w[1]", "B.w", "A.q", "A.p", "B.r"];
    assert_eq!(names.map(read), [1, 1, 1, 1, 1, 1, 1, 0, 1]);
}

#[test]
fn operators_bind_and_group_as_documented() {
    let cases = [
        ("x = 7 - 2 - 1", 4),
        ("x = 100 / 5 / 2", 10),
        ("x = 1 + 2 * 3", 7),
        ("x = -7 / 2", -3),
        ("x = -7 % 3", -1),
        ("x = 7 % -3", 1),
        ("x = 1 << 2 + 1", 8),
        ("x = 1 << 1 < 3", 1),
        ("x = 5 & 3 == 3", 1),
        ("x = 6 ^ 3", 5),
        ("x = 4 | 6 ^ 3 & 1", 4 | (6 ^ (3 & 1))),
        ("x = 1 == 2 == 0", 1),
        ("x = ~5", -6),
        ("x = not 5", 0),
        ("x = not 0 == 1", 1),
        ("x = - - 3", 3),
        ("x = 1 or 0 and 0", 1),
        ("x = 0 imply 1 imply 0", 0),
        ("x = (1 imply 0) + (0 imply 0) * 2", 2),
        ("x = -9 >> 1", -5),
        ("x = 5 && 2", 1),
        ("x = 0 || 7", 1),
        ("x = true + true - false", 2),
        ("x = 3 > 2 > 1", 0),
        ("x = 1 << 33", 2),
        ("x = (2147483647 + 1 < 0)", 1),
        // Short-circuit: the right side would divide by zero.
        ("x = 0 and 1 / 0", 0),
        ("x = 1 or 1 / 0", 1),
        ("x = 0 imply 1 / 0", 1),
        // In sequence.
        ("x = 1, x = x + x, x = x * 5", 10),
    ];
    for (effect, expected) in cases {
        assert_eq!(after("", effect), expected, "{effect}");
        // The same with operands that are not constant.
        let variables = effect.replace('0', "zero").replace("33", "(33 + zero)").replace("1zero", "10");
        if !variables.contains("1zero") && !effect.contains("100") {
            assert_eq!(after("byte zero; byte one = 1;", &variables), expected, "{variables}");
        }
    }
}

#[test]
fn constants_sizes_and_initial_values() {
    let cases = [
        ("const byte N = 3; byte a[N + 1] = {1, 2, N}; ", "x = a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000", 321),
        // A list that is too short leaves zeros; one that is too long is cut.
        ("byte a[2] = {5};", "x = a[0] * 10 + a[1]", 50),
        ("byte a[2] = {5, 6, 700};", "x = a[0] * 10 + a[1]", 56),
        // A bare array is its first element, read and written.
        ("byte a[2] = {5, 6};", "a = a + 1, x = a[0] * 10 + a[1]", 66),
        ("const int k[3] = {-4, 5, 6}; byte i = 2;", "x = k[i] * 10 + k", 56),
        ("byte one = 1; byte two = one + one;", "x = two", 2),
        ("const int low = -32768;", "x = low", -32768),
        ("byte i = 1; byte a[3];", "a[i] = 7, i = 2, a[i] = a[1] + 1, x = a[1] * 10 + a[2]", 78),
    ];
    for (declarations, effect, expected) in cases {
        assert_eq!(after(declarations, effect), expected, "{declarations} {effect}");
    }
}

#[test]
fn names_of_a_process_hide_global_ones() {
    let text = "byte x = 1; process P { byte x = 5; state a, b; init a; trans a -> b { guard x == 5; effect x = 6; }; }
                process Q { state a, b; init a; trans a -> b { guard x == 1 and P->x == 6; }; } system async;";
    assert_eq!(counts(text), (3, 2, 1, 0));
}

#[test]
fn comments_and_continued_lines() {
    // `//` hides `*/` inside a comment; a backslash joins lines.
    let text = "byte x; /* a // b */ still a comment\n */ process P { state \\  \n a; init a; trans // none\n; } system async;";
    assert_eq!(counts(text), (1, 0, 1, 0));
}

#[test]
fn short_transitions_and_lists_of_guards() {
    let text = "byte x; process P { state a, b, c; init a;
                trans a -> b { guard x == 0, not P.b; }, -> c {}, b -> c {}; } system async;";
    // a to b, a to c, b to c.
    assert_eq!(counts(text), (3, 3, 1, 0));
}

#[test]
fn parallel_edges_count_each() {
    let text = "process P { state a, b; init a; trans a -> b {}, a -> b {}, b -> b {}; } system async;";
    assert_eq!(counts(text), (2, 3, 0, 0));
}

/// Two senders and two receivers in different processes: four pairs; a process is no partner of itself.
#[test]
fn handshakes_meet_in_all_pairs() {
    let sender = |name: &str| format!("process {name} {{ state a, b; init a; trans a -> b {{ sync c!; }}; }} ");
    let receiver = |name: &str| format!("process {name} {{ state a, b; init a; trans a -> b {{ sync c?; }}; }} ");
    let both = "process X { state a, b; init a; trans a -> b { sync c!; }, a -> b { sync c?; }; } ";
    // Initially 4 pairs to 4 states; each then has 1 pair left, two of them lead to the same end.
    let text = format!("channel c; {}{}{}{}system async;", sender("S"), sender("T"), receiver("Q"), receiver("R"));
    assert_eq!(counts(&text), (6, 8, 1, 0));
    // X alone can neither send nor receive.
    assert_eq!(counts(&format!("channel c; {both}system async;")), (1, 0, 1, 0));
    // X with a sender: it receives. Its own receive comes in the middle of the others.
    let text = format!("channel c; {}{both}{}system async;", receiver("Q"), receiver("R"));
    // X sends to Q or to R; then no process sends any more.
    assert_eq!(counts(&text), (3, 2, 2, 0));
}

/// Values and targets are evaluated before any effect; the receiver's effects see what was received, the sender's
/// come last.
#[test]
fn handshakes_pass_values_before_effects() {
    let text = "byte g; byte h; byte seen; channel c;
        process S { byte i = 1; state a, b; init a; trans a -> b { sync c!{i, i + 1}; effect i = 9, g = h + 10; }; }
        process R { byte v[3]; byte k = 1; state a, b; init a;
            trans a -> b { sync c?{v[k], v[k + 1]}; effect k = v[1] + 4, h = k, seen = S.b * 10 + R.b; }; }
        system async;";
    assert_eq!(counts(text), (2, 1, 1, 0));
    let system = system(text);
    let explored = explore(&system);
    let read = |name: &str| system.read(&mut system.scratch(), &explored.states[1], system.resolve(name).expect(name));
    let names = ["R.v[0]", "R.v[1]", "R.v[2]", "R.k", "h", "g", "S.i", "seen"];
    assert_eq!(names.map(read), [0, 1, 2, 5, 5, 15, 9, 1]);
}

#[test]
fn typed_channels_cast() {
    let cases = [
        ("channel {byte} c[0];", "byte", "300", 44),
        ("channel {int} c[0];", "int", "40000", 40000 - 65536),
        ("channel {byte} c[0];", "int", "-1", 255),
        ("channel {byte} c[1];", "int", "-1", 255),
        ("channel {byte} c[2];", "byte", "300", 44),
    ];
    for (channel, kind, sent, expected) in cases {
        let text = format!(
            "{channel} {kind} x; process S {{ state a, b; init a; trans a -> b {{ sync c!{sent}; }}; }}
             process R {{ state a, b; init a; trans a -> b {{ sync c?x; }}; }} system async;"
        );
        let system = system(&text);
        let explored = explore(&system);
        let last = explored.states.last().expect("a state");
        let found = system.read(&mut system.scratch(), last, system.resolve("x").expect("x"));
        assert_eq!(found, expected, "{text}");
        assert!(faults(&text).is_empty(), "{text}");
    }
}

/// An untyped channel passes the number unchanged; only its target can refuse it.
#[test]
fn untyped_channels_do_not_cast() {
    let text = "channel c; byte x; process S { state a, b; init a; trans a -> b { sync c!300; }; }
                process R { state a, b; init a; trans a -> b { sync c?x; }; } system async;";
    assert_eq!(counts(text), (1, 0, 0, 1));
    assert_eq!(faults(text), ["300 does not fit `x`, a byte (0 to 255), in what is received in line 2"]);
}

/// A queue of capacity n filled by one process and emptied by another, which store nothing else: n + 1 states.
#[test]
fn buffers_are_queues_of_bounded_length() {
    for capacity in 1..5 {
        let text = format!(
            "channel {{byte, int}} c[{capacity}];
             process S {{ state a; init a; trans a -> a {{ sync c!{{7, -7}}; }}; }}
             process R {{ byte x; int y; state a; init a; trans a -> a {{ sync c?{{x, y}}; effect x = 0, y = 0; }}; }}
             system async;"
        );
        assert_eq!(counts(&text), (capacity + 1, 2 * capacity, 0, 0), "{capacity}");
    }
}

/// Messages are received in the order they were sent; unused items are zero.
#[test]
fn buffers_keep_the_order() {
    let text = "channel {byte} c[3]; byte x;
        process S { state a, b, d; init a; trans a -> b { sync c!1; }, b -> d { sync c!2; }; }
        process R { state a, b, d; init a; trans a -> b { sync c?x; effect x = x * 10; }, b -> d { sync c?x; }; }
        system async;";
    // Pairs (sent, received) with received at most sent: 6; each determines the buffer and x.
    assert_eq!(counts(text), (6, 6, 1, 0));
    let system = system(text);
    let explored = explore(&system);
    let shown: Vec<String> = explored
        .states
        .iter()
        .map(|state| {
            let words = system.state(state).into_iter().map(|(name, value)| format!("{name}={value}"));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert!(shown.contains(&"x=0 c=[1, 2] S=d R=a".to_string()), "{shown:?}");
    assert!(shown.contains(&"x=10 c=[2] S=d R=b".to_string()), "{shown:?}");
    assert!(shown.contains(&"x=2 c=[] S=d R=d".to_string()), "{shown:?}");
}

/// A value is put into the buffer, and taken out of it, before the effects.
#[test]
fn buffers_transfer_before_effects() {
    let text = "channel {byte} c[1]; byte x = 3; byte y;
        process S { state a, b; init a; trans a -> b { sync c!x; effect x = 4; }; }
        process R { state a, b; init a; trans a -> b { sync c?y; effect y = y + 1; }; } system async;";
    assert_eq!(counts(text), (3, 2, 1, 0));
    let system = system(text);
    let last = explore(&system).states.last().expect("a state").clone();
    assert_eq!(system.read(&mut system.scratch(), &last, system.resolve("y").expect("y")), 4);
}

/// One process may send to a buffer and receive from it.
#[test]
fn a_process_may_use_its_own_buffer() {
    let text = "channel {byte} c[2]; process P { byte x; state a; init a;
        trans a -> a { sync c!1; }, a -> a { sync c?x; effect x = 0; }; } system async;";
    assert_eq!(counts(text), (3, 4, 0, 0));
}

/// P passes through a committed state: Q cannot move meanwhile. Without `commit` there are 3 * 2 states.
#[test]
fn committed_states_come_first() {
    let model = |commit: &str| {
        format!(
            "process P {{ state a, b, d; init a; {commit} trans a -> b {{}}, b -> d {{}}; }}
             process Q {{ state a, b; init a; trans a -> b {{}}; }} system async;"
        )
    };
    assert_eq!(counts(&model("")), (6, 7, 1, 0));
    // Each of the two states of Q: a, b, d of P; in b only P moves.
    assert_eq!(counts(&model("commit b;")), (6, 6, 1, 0));
    assert_eq!(counts(&model("commit a, b;")), (4, 3, 1, 0));
}

/// A committed process that cannot move blocks all; a handshake needs both partners committed.
#[test]
fn committed_states_can_block() {
    let text = "channel c; process P { state a; init a; commit a; trans a -> a { sync c!; }; }
                process Q { state a; init a; trans a -> a { sync c?; }, a -> a {}; } system async;";
    assert_eq!(counts(text), (1, 0, 1, 0));
    let both = text.replace("process Q { state a; init a;", "process Q { state a; init a; commit a;");
    assert_eq!(counts(&both), (1, 2, 0, 0));
}

#[test]
fn assertions_are_faults_of_states() {
    let text = "byte x; process P { state a, b; init a; assert a: x < 2, a: true, b: x == 2, b: 6 / x > 2;
                trans a -> a { guard x < 3; effect x = x + 1; }, a -> b { guard x > 0; }; } system async;";
    // x = 0 … 3 in a, 1 … 3 in b; a fails at 2 and 3, b at 1 and 3, and the last at 3.
    assert_eq!(counts(text), (7, 6, 1, 5));
    assert_eq!(
        faults(text),
        [
            "the assertion of P for state `a` in line 1 does not hold",
            "the assertion of P for state `b` in line 1 does not hold",
        ]
    );
    let text = "byte x; process P { state a; init a; assert a: 1 / x; } system async;";
    assert_eq!(
        faults(text),
        ["the assertion of P for state `a` in line 1 divides by zero or goes outside of an array"]
    );
}

#[test]
fn faults_are_told_with_their_place() {
    let cases = [
        ("byte x = 255;", "", "effect x = x + 1;", "256 does not fit `x`, a byte (0 to 255), in an effect in line 2"),
        ("byte x;", "", "effect x = x - 1;", "-1 does not fit `x`, a byte (0 to 255), in an effect in line 2"),
        (
            "int x = 32767;",
            "",
            "effect x = x + 1;",
            "32768 does not fit `x`, an int (-32768 to 32767), in an effect in line 2",
        ),
        ("byte x; byte y;", "", "effect x = 5 / y;", "division by zero, in an effect in line 2"),
        ("byte x; byte y;", "guard 5 % y == 1;", "", "division by zero, in the guard in line 2"),
        (
            "byte a[3]; byte i = 3;",
            "",
            "effect a[i] = 1;",
            "index 3 is outside of `a`, which has elements 0 to 2, in an effect in line 2",
        ),
        (
            "byte a[3]; int i = -1;",
            "guard a[i] == 0;",
            "",
            "index -1 is outside of `a`, which has elements 0 to 2, in the guard in line 2",
        ),
        (
            "const byte t[2] = {1, 2}; byte i = 2;",
            "guard t[i];",
            "",
            "index 2 is outside of `t`, which has elements 0 to 1, in the guard in line 2",
        ),
        (
            "byte a[2] = {1, 0};",
            "",
            "effect a[5] = 1;",
            "index 5 is outside of `a`, which has elements 0 to 1, in an effect in line 2",
        ),
        ("", "", "effect own = own - 1;", "-1 does not fit `P.own`, a byte (0 to 255), in an effect in line 2"),
        (
            "byte a[2]; byte i = 1;",
            "",
            "effect a[i] = 999;",
            "999 does not fit `a[1]`, a byte (0 to 255), in an effect in line 2",
        ),
    ];
    for (declarations, guard, effect, expected) in cases {
        let text = format!(
            "{declarations}\nprocess P {{ byte own; state s, e; init s; trans s -> e {{ {guard} {effect} }}; }} system async;"
        );
        assert_eq!(counts(&text), (1, 0, 0, 1), "{text}");
        assert_eq!(faults(&text), [expected], "{text}");
    }
}

/// A guard that fails makes its transition ready, but a handshake still takes two.
#[test]
fn a_failing_guard_of_a_handshake_needs_a_partner() {
    let sender = "channel c; byte z; process S { state a; init a; trans a -> a { guard 1 / z; sync c!; }; } ";
    let receiver =
        |guard: &str| format!("process R {{ state a; init a; trans a -> a {{ guard {guard}; sync c?; }}; }} ");
    assert_eq!(counts(&format!("{sender}system async;")), (1, 0, 1, 0));
    assert_eq!(counts(&format!("{sender}{}system async;", receiver("z"))), (1, 0, 1, 0));
    assert_eq!(counts(&format!("{sender}{}system async;", receiver("true"))), (1, 0, 0, 1));
    assert_eq!(counts(&format!("{sender}{}system async;", receiver("1 % z"))), (1, 0, 0, 1));
}

/// Both sides of a handshake assign a global: a fault. Receiving into it is none.
#[test]
fn handshakes_that_assign_the_same_global_are_faults() {
    let model = |declaration: &str, sender: &str, receiver: &str| {
        format!(
            "channel c; {declaration} process S {{ state a, b; init a; trans a -> b {{ sync c!5; {sender} }}; }}
             process R {{ byte v; state a, b; init a; trans a -> b {{ {receiver} }}; }} system async;"
        )
    };
    let both = model("byte g;", "effect g = 1;", "sync c?v; effect g = 1;");
    assert_eq!(counts(&both), (1, 0, 0, 1));
    assert_eq!(faults(&both), ["sender (line 1) and receiver (line 2) both assign `g`"]);
    assert_eq!(counts(&model("byte g[2];", "effect g[0] = 1;", "sync c?v; effect g[1] = 1;")), (1, 0, 0, 1));
    assert_eq!(counts(&model("byte g;", "effect g = 1;", "sync c?g;")), (2, 1, 1, 0));
}

/// Two counters modulo 2 and 3 that move at once: 6 states, one step each.
#[test]
fn synchronous_systems_move_all_processes() {
    let counter = |name: &str, modulus: u32| {
        format!("process {name} {{ byte x; state a; init a; trans a -> a {{ effect x = (x + 1) % {modulus}; }}; }} ")
    };
    assert_eq!(counts(&format!("{}{}system sync;", counter("P", 2), counter("Q", 3))), (6, 6, 0, 0));
    // Two choices of one and three of the other: six steps from the first state, all combinations.
    let text = "process P { state a, b, c; init a; trans a -> b {}, a -> c {}; }
                process Q { byte x; state a, b; init a; trans a -> b { effect x = 1; }, a -> b { effect x = 2; }, a -> b {}; }
                system sync;";
    assert_eq!(counts(text), (7, 6, 6, 0));
    // One process is stuck, so all are; labels of channels and committed states have no effect.
    let text = "channel c; process P { state a; init a; commit a; trans a -> a { sync c!; }; }
                process Q { state a, b; init a; trans a -> b {}; } system sync;";
    assert_eq!(counts(text), (2, 1, 1, 0));
    // Each reads the source: the values are exchanged.
    let text = "byte x = 1; byte y = 2; process P { state a; init a; trans a -> a { effect x = y; }; }
                process Q { state a; init a; trans a -> a { effect y = x; }; } system sync;";
    assert_eq!(counts(text), (2, 2, 0, 0));
    // Two assign the same.
    let text = "byte x[2]; process P { state a; init a; trans a -> a { effect x[0] = 1; }, a -> a {}; }
                process Q { state a; init a; trans a -> a { effect x[1] = 1; }; } system sync;";
    assert_eq!(counts(text), (2, 2, 0, 2));
    assert_eq!(faults(text), ["two processes assign `x` at once (one of them in line 2)"]);
    // A guard that fails in one of them.
    let text = "byte z; process P { state a; init a; trans a -> a { guard 1 / z; }, a -> a {}; }
                process Q { state a; init a; trans a -> a {}; } system sync;";
    assert_eq!(counts(text), (1, 1, 0, 1));
}

/// The property process takes no part: the model has the same states without it.
#[test]
fn property_processes_are_left_out() {
    let accepts = [
        "accept q2;",
        "accept buchi q1, q2;",
        "accept genbuchi (q1), (q1, q2), ();",
        "accept muller (q2);",
        "accept rabin (q1; q2), (; q1);",
        "accept streett (q1; ), (q1, q2; q2);",
        "",
    ];
    for accept in accepts {
        let text = format!(
            "channel c; byte x; process LTL {{ byte n; state q1, q2; init q1; {accept}
               trans q1 -> q1 {{}}, q1 -> q2 {{ guard x == 1 and P->own == 0; effect n = 1; }}, q2 -> q1 {{ sync c?; }}; }}
             process P {{ byte own; state a, b; init a; trans a -> b {{ effect x = 1; }}, b -> a {{ effect x = 0; }}, b -> b {{ sync c!; }}; }}
             system async property LTL;"
        );
        assert_eq!(counts(&text), (2, 2, 0, 0), "{text}");
        let program = parse(text.as_bytes()).expect("a model");
        let monitor = program.monitor.as_ref().expect("the property process is kept");
        assert_eq!((monitor.process.name.as_str(), monitor.transitions.len(), monitor.slots), ("LTL", 3, 1));
        assert!(
            program.cells[program.state_cells().len()..].iter().all(|cell| cell.field.slot() as usize >= program.slots)
        );
    }
}

/// A variable proved small takes few bits; a byte with a sentinel of 255 too; a constant none.
#[test]
fn states_are_narrow() {
    let cases = [
        ("byte x;", "q -> q { effect x = (x + 1) % 4; }", 2),
        (
            "byte x = 255;",
            "q -> q { guard x == 255; effect x = 0; }, q -> q { guard x < 2; effect x = x + 1; }, q -> q { effect x = 255; }",
            2,
        ),
        ("int x = -1;", "q -> q { guard x < 6; effect x = x + 1; }", 3),
        ("int x;", "q -> q { guard x < 1000; effect x = x + 1; }", 10),
        ("byte x; byte y;", "q -> r { effect x = 1; }, r -> q { effect x = 0; }", 2),
        ("byte x = 7; byte a[9];", "q -> q { guard x == 7; }", 0),
        ("byte x;", "q -> q { effect x = x + 1; }", 8),
        ("int x;", "q -> q { effect x = x - 1; }", 16),
        ("byte a[4]; byte i;", "q -> q { effect a[i] = 1 - a[i], i = (i + 1) % 4; }", 6),
        ("byte x = 255;", "q -> q { guard x; effect x = (x - 1) | ((x == 255) * 255); }, q -> q { effect x = 5; }", 3),
    ];
    for (declarations, transitions, bits) in cases {
        let states = if transitions.contains("-> r") { "q, r" } else { "q" };
        let text = format!("{declarations} process P {{ state {states}; init q; trans {transitions}; }} system async;");
        let program = parse(text.as_bytes()).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        let found: u32 = program.state_cells().iter().map(|cell| u32::from(cell.field.bits())).sum();
        assert_eq!(found, bits, "{text}");
        counts(&text);
    }
}

#[test]
fn actions_tell_process_locations_partner_and_place() {
    let text = "channel c; byte y;\nprocess P { state a, b; init a;\n trans a -> b { sync c!y + 5; }; }
process Q { byte x; state a; init a; trans\n a -> a { sync c?x; },\n a -> a { guard x == 5; effect x = 0; }; } system async;";
    let system = system(text).in_file("model.dve");
    let explored = explore(&system);
    let told: Vec<String> = explored
        .edges
        .iter()
        .map(|edge| system.describe().action(&explored.states[edge.source], edge.action))
        .collect();
    assert_eq!(told, ["P: a -> b, c!5 to Q: a -> a, c?x (model.dve:3, model.dve:5)", "Q: a -> a (model.dve:6)"]);
}

/// The sent values are shown only if the guard holds: if it faults, the index after it may be arbitrary.
#[test]
fn a_send_whose_guard_fails_is_told() {
    let text = "byte z; byte i = 7; byte a[3]; channel {byte} q[2]; process P { state s; init s; trans
        s -> s { guard 1 / z == 1 and i < 3; sync q!a[i]; },
        s -> s { effect i = 1; }, s -> s { effect i = 2; }, s -> s { effect z = 1; }; } system async;";
    let system = system(text);
    let mut batch = Batch::new(system.width());
    system.initial(&mut system.scratch(), &mut batch).expect("no layout widens");
    assert_eq!(system.describe().action(batch.target(0), Action(0)), "P: s -> s, q!? (line 2)");
    assert_eq!(faults(text), ["division by zero, in the guard in line 2"]);
}

/// Models that once had a wrong result, each the smallest found for its cause; numbers computed by hand.
#[test]
fn faults_at_the_edges_of_types_and_behind_other_effects() {
    let cases = [
        // 256 does not fit a byte, though a field that counts modulo 256 from 254 or 255 on has a code for 0.
        (
            "byte g0 = 0; byte g1 = 100; byte g2 = 254;",
            "process P0 { state s0; init s0; trans s0 -> s0 { }; }
             process P2 { state s0; init s0; trans
               s0 -> s0 { effect g2 = 256 + 0; }, s0 -> s0 { effect g2 = (g2 or P0.s0) >= g1 << g0; }; }",
            (2, 4, 0, 2),
        ),
        ("byte x;", "process P { state s; init s; trans s -> s { effect x = 255, x = 256; }; }", (1, 0, 0, 1)),
        (
            "byte x;",
            "process P { state s; init s; trans s -> s { effect x = 255; }, s -> s { guard x; effect x = x + 1; }; }",
            (2, 2, 0, 1),
        ),
        (
            "byte x; channel c;",
            "process P { state s; init s; trans s -> s { sync c!256; }, s -> s { effect x = 255; }; }
             process Q { state s; init s; trans s -> s { sync c?x; }; }",
            (2, 2, 0, 2),
        ),
        // A byte never equals 256, whatever its field counts from.
        (
            "byte x = 255;",
            "process P { state s, t; init s; trans s -> s { effect x = 0; }, s -> t { guard x == 256; }, s -> t { guard x + 0 == 256; }; }",
            (2, 2, 0, 0),
        ),
        // An element read on one of two paths through an expression, after an effect that assigned the array.
        (
            "int g0[3] = {0, 0};",
            "process P0 { state s0, s1, s2, s3; init s2; trans s2 -> s1 { effect g0[P0.s3] = (g0[P0.s3] + 1) % 3; }; }
             process P1 { state s0; init s0; trans s0 -> s0 { effect g0[3 != P0.s0] = g0[g0[1]] ^ g0[1] & 2,
               g0 = (P0.s0 imply g0[3]) / (g0[1] || g0[65535]) & 3; }; }",
            (3, 3, 0, 1),
        ),
        (
            "int g0[4] = {0, 5, 3};",
            "process P0 { state s0, s1; init s1; trans s0 -> s1 { }, s1 -> s0 { effect g0 = 2; },
               -> s0 { effect g0[1] = P0.s1 << 2, g0[1] = (1 and 1 and (g0 or g0[255])) & 1; }; }",
            (5, 7, 0, 1),
        ),
        (
            "byte g0[2] = {5, 0};",
            "process P2 { int x0 = 0; state s0; init s0; trans s0 -> s0 { }, -> s0 { effect x0 = 1 - x0; },
               -> s0 { effect x0 = g0[1], g0[0] = not - x0 & 1, g0[x0 and g0[x0]] = 3; },
               -> s0 { effect g0[0] = (g0[0] + 1) % 4; }; }",
            (10, 40, 0, 0),
        ),
        (
            "byte a[2] = {1}; byte b;",
            "process P { state s; init s; trans s -> s { effect a[1] = 1, b = a or a[3]; }; }",
            (2, 2, 0, 0),
        ),
        (
            "byte a[2] = {1}; byte i;",
            "process P { state s; init s; trans s -> s { effect a[1] = 1, a[0] = a[(a[i] || a[3])]; }; }",
            (2, 2, 0, 0),
        ),
    ];
    for (declarations, processes, expected) in cases {
        assert_eq!(
            counts(&format!("{declarations} {processes} system async;")),
            expected,
            "{declarations} {processes}"
        );
    }
}
