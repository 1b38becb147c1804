//! The macros of `.mdve` files: their expansion, and the diagnostics if they are wrong.

use deltamark_core::{Batch, System};
use deltamark_dve::macros::{Expanded, expand};
use std::collections::HashSet;

fn expanded(text: &str, parameters: &[(&str, &str)]) -> Result<Expanded, String> {
    let parameters: Vec<_> = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    expand(text.as_bytes(), &parameters).map_err(|diagnostics| {
        let one = |diagnostic: deltamark_core::Diagnostic| {
            let span = diagnostic.span.map_or("-".into(), |span| {
                assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic:?}");
                span.start.to_string()
            });
            format!("{span}: {}", diagnostic.message)
        };
        diagnostics.into_iter().map(one).collect::<Vec<_>>().join("\n")
    })
}

/// White space is irrelevant in DVE.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn words_of_m4_do_what_they_do_there() {
    let cases = [
        ("byte x;", "byte x;"),
        ("define(a, 1)a b", "1 b"),
        ("define(`a', `b')define(`b', `c')a", "c"),
        ("define(`f', `<$1|$2|$#|$*|`$0'>')f(1, 2) f() f", "<1|2|2|1,2|f> <||1||f> <||0||f>"),
        ("define(`f', `$2')f((1, 2), 3)", "3"),
        ("define(`f', `$1')f(`(')x", "(x"),
        ("define(`f', `$@')define(`x', 1)f(`x', ``x'')", "x,`x'"),
        ("define(`f', `$*')define(`x', 1)f(`x', ``x'')", "1,x"),
        ("``quoted' twice' define(`q', 1)`q'", "`quoted' twice q"),
        ("define(`x', 5)// x is not looked at, nor `here\nx", "// x is not looked at, nor `here\n5"),
        ("a dnl to the end of the line\nb", "a b"),
        ("ifdef(`x', yes, no) define(`x', )ifdef(`x', yes, no)", "no yes"),
        ("ifelse(1, 2, a, b) ifelse(1, 1, a, b) ifelse(1, 2, a, 3, 3, c, d) ifelse(1, 2, a, 3, 4, c, d)", "b a c d"),
        ("ifelse(1, 2, a)", ""),
        ("eval(2*(3+4)) incr(7) decr(7) eval(7 % 4 == 3)", "14 8 6 1"),
        ("pushdef(`x', 1)pushdef(`x', 2)x popdef(`x')x popdef(`x')x", "2 1 x"),
        ("define(`x', 1)undefine(`x')x", "x"),
        ("define(`x', `y z')define(`w', defn(`x'))w", "y z"),
        ("len(abc) index(abcabc, ca) index(a, b) substr(abcdef, 2, 3) translit(banana, an, xy)", "3 2 -1 cde bxyxyx"),
        ("translit(a-b, `a-', `x')", "xb"),
        ("define(`f', `ifelse($#, 1, $1, `$1; f(shift($@))')')f(a, b, c)", "a; b; c"),
        ("changequote([, ])define([x], 3)x changequote`y'", "3 y"),
        ("divert(1)late divert`'early undivert(1)x", "early late x"),
        ("divert(-1)nothing divert(0)x divert(2)end", "x end"),
        // A word may end in a mark if there is such a macro; otherwise it does not.
        ("define(`c!', `c_in!')define(`x', 7)c!1 d!2 x!=3 x?", "c_in!1 d!2 7!=3 7?"),
        // Words that are macros only with arguments are plain words without.
        ("define len, index; top full empty eval", "define len, index; top full empty eval"),
        ("changecom(`//')changeword(`[a-z]+[!?]?')x", "x"),
    ];
    for (text, plain) in cases {
        assert_eq!(expanded(text, &[]).map(|expanded| squeezed(&expanded.text)), Ok(squeezed(plain)), "{text}");
    }
}

#[test]
fn the_prelude_has_the_words_that_models_use() {
    let cases = [
        ("default(N, 2)byte a[N];", "byte a[2];"),
        ("default(M, 2)default(K, eval(M+1))K", "3"),
        ("bool b = true, c = false;", "byte b = 1, c = 0;"),
        ("forloop(i, 0, 3, `i,')", "0,1,2,3,"),
        ("forloop(i, 0, 1, `forloop(i, 5, 6, `i')')", "0011"),
        ("forloop(`i', 1, 0, `i')x", "x"),
        ("default(N, 3)forloop(i, 1, N-1, `P_`'i ')", "P_1 P_2"),
        ("forloop(i, 0, 1, `forloop(j, 0, i, `<i,j>')')", "<0,0><1,0><1,1>"),
        ("myloop(i, 0, 2, `i', `,')", "0 , 1 , 2"),
        ("myloop(i, 2, 2, `a[i]', `&&')", "a[2]"),
        ("default(N, 3)forallx(`x;')", "0;1;2;"),
        (
            "queue(q, 3) push(q, 1); pop_front(q); front(q) full(q) empty(q)",
            "byte q[3]; byte q_act = 0; \
          q[q_act] = 1, q_act = q_act+1; q[0] = q[1], q[1] = q[2], q[2] = 0, q_act = q_act-1; q[0] q_act == 3 q_act == 0",
        ),
        ("stack(s, 2) pop(s); top(s)", "byte s[2]; byte s_act = 0; s[s_act-1] = 0, s_act = s_act-1; s[s_act-1]"),
        (
            "async_channel(c) c!1 c? system async;",
            "channel c_in, c_out; c_in!1 c_out? process channel_c { byte v; \
          state ready, carrying; init ready; trans ready -> carrying { sync c_in?v; }, carrying -> ready { sync c_out!v; }; } \
          system async;",
        ),
        (
            "loosy_channel(c) system async;",
            "channel c_in, c_out; process channel_c { byte v; state ready, carrying; init ready; \
          trans ready -> carrying { sync c_in?v; }, carrying -> ready { }, carrying -> ready { sync c_out!v; }; } system async;",
        ),
        (
            "bounded_loosy_channel(c, 2) system async;",
            "channel c_in, c_out; process channel_c { byte v, lost = 0; \
          state ready, carrying; init ready; trans ready -> carrying { sync c_in?v; }, \
          carrying -> ready { guard lost < 2; effect lost = lost+1; }, \
          carrying -> ready { sync c_out!v; effect lost = 0; }; } system async;",
        ),
        (
            "buffer_channel(c, 2) buffer_channel(d, 1) system async;",
            "channel c_in, c_out; channel d_in, d_out; \
          process channel_c { byte buf[2]; byte buf_act = 0; state q; init q; trans \
          q -> q { guard not(buf_act == 2); sync c_in?buf[buf_act]; effect buf_act = buf_act+1; }, \
          q -> q { guard not(buf_act == 0); sync c_out!buf[0]; effect buf[0] = buf[1], buf[1] = 0, buf_act = buf_act-1; }; } \
          process channel_d { byte buf[1]; byte buf_act = 0; state q; init q; trans \
          q -> q { guard not(buf_act == 1); sync d_in?buf[buf_act]; effect buf_act = buf_act+1; }, \
          q -> q { guard not(buf_act == 0); sync d_out!buf[0]; effect buf[0] = 0, buf_act = buf_act-1; }; } system async;",
        ),
    ];
    for (text, plain) in cases {
        assert_eq!(expanded(text, &[]).map(|expanded| squeezed(&expanded.text)), Ok(squeezed(plain)), "{text}");
    }
}

#[test]
fn parameters_take_the_place_of_defaults() {
    type Given = &'static [(&'static str, &'static str)];
    let cases: [(&str, Given, Result<&str, &str>); 8] = [
        ("default(N, 2)N", &[("N", "5")], Ok("5")),
        ("default(N, 2)N", &[("N", "3"), ("N", "4")], Ok("4")),
        ("N", &[("N", "5")], Ok("5")),
        ("ifdef(`X', a, b)", &[("X", "")], Ok("a")),
        ("default(N, 2)default(K, N)K", &[("N", "7")], Ok("7")),
        ("default(N, 2)N", &[("M", "5")], Err("-: the model has no parameter `M`")),
        ("// N", &[("N", "5")], Err("-: the model has no parameter `N`")),
        ("N", &[("N-1", "5")], Err("-: `N-1` cannot be a parameter")),
    ];
    for (text, parameters, plain) in cases {
        let found = expanded(text, parameters).map(|expanded| squeezed(&expanded.text));
        assert_eq!(found, plain.map(String::from).map_err(String::from), "{text} {parameters:?}");
    }
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    let cases = [
        ("a `b", "2: this quote is never closed"),
        ("a forloop(i, 0, 3, `i'", "2: the arguments of `forloop` have no end"),
        ("byte a[eval(N)];", "12: `N` is no number"),
        ("forloop(i, 0, N, `i')", "14: `N` is no number"),
        ("eval(1/0)", "5: `1/0` divides by zero"),
        ("define(`', 2)", "0: a macro must have a name"),
        ("x include(`y')", "2: a model is one file: macros reach nothing outside it"),
        ("changequote(a, b)", "0: these cannot be quotes"),
        ("changecom(`#')", "0: comments begin with `//` here and with nothing else"),
        ("eval(1, 16)", "0: `eval` takes one argument here"),
    ];
    for (text, message) in cases {
        assert_eq!(expanded(text, &[]).map(|expanded| expanded.text), Err(message.into()), "{text}");
    }
}

#[test]
fn expansion_ends() {
    let cases = [
        ("define(`x', `x')x", "the macros do not come to an end"),
        ("define(`x', `x x')x", "the macros do not come to an end"),
        ("define(`x', `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x')x", "the text grows beyond 4 MiB"),
        ("define(`f', `f(`$1$1')')f(`aa')", "the text grows beyond 4 MiB"),
        ("define(`f', `$1$1$1$1')define(`g', `f(f(f(f(f(f(`$1'))))))')g(g(g(a)))", "the text grows beyond 4 MiB"),
        ("forloop(i, 0, 2147483647, `i')", "the macros do not come to an end"),
        ("define(`x', `len(x')x", "macros are nested too deeply here"),
    ];
    for (text, message) in cases {
        let found = expanded(text, &[]).map(|expanded| expanded.text.len());
        let told = found.as_ref().is_err_and(|found| found.ends_with(message));
        assert!(told, "{text}: {found:?}");
    }
}

#[test]
fn every_byte_knows_where_it_comes_from() {
    // The body of a macro and its arguments keep their own spans; the expansion of a prelude macro has that of the
    // call.
    let text = "define(`P', `process P_$1 { state wrong; }')\nP(12)\nqueue(q, 3)";
    let expanded = expanded(text, &[]).expect("it expands");
    let cases = [("process", "process"), ("wrong", "wrong"), ("12", "12"), ("byte q_act", "q"), ("[3]", "q")];
    for (plain, source) in cases {
        let at = expanded.text.find(plain).unwrap_or_else(|| panic!("{plain} in {}", expanded.text));
        let span = expanded.origin(deltamark_core::Span::new(at, at + plain.len()));
        assert!(span.end <= text.len());
        assert!(text[span.start..].starts_with(source), "{plain}: {span:?}");
    }
    assert!(expanded.origin(deltamark_core::Span::at(expanded.text.len())).start < text.len());
}

#[test]
fn any_bytes_expand_or_are_told() {
    // A simple generator is enough: meaningful pieces in any order.
    let pieces = [
        "`",
        "'",
        "(",
        ")",
        ",",
        "define",
        "forloop",
        "x",
        "ifelse",
        "1",
        " ",
        "\n",
        "//",
        "$1",
        "$@",
        "eval",
        "dnl",
        "c!",
        "é",
        "shift",
        "popdef",
        "divert",
        "undivert",
        "changequote",
        "system",
    ];
    let mut seed = 1u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..20 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        if let Ok(expanded) = expanded(&text, &[]) {
            for at in 0..expanded.text.len() {
                let span = expanded.origin(deltamark_core::Span::new(at, at + 1));
                assert!(span.end <= text.len(), "{text:?} {span:?}");
            }
        }
    }
}

/// The states and edges of a model.
fn counts(program: deltamark_dve::ir::Program) -> (usize, usize) {
    let system = deltamark_dve::DveSystem::new(program);
    let (mut scratch, mut batch) = (system.scratch(), Batch::new(system.width()));
    system.initial(&mut scratch, &mut batch).expect("the layout is known");
    let mut known = HashSet::from([batch.target(0).to_vec()]);
    let (mut waiting, mut edges) = (vec![batch.target(0).to_vec()], 0);
    while let Some(state) = waiting.pop() {
        batch.reset(system.width());
        system.successors(&mut scratch, &state, &mut batch).expect("the layout is known");
        edges += batch.len();
        waiting.extend(batch.targets().iter().filter(|target| known.insert(target.to_vec())).map(<[u32]>::to_vec));
    }
    (known.len(), edges)
}

/// Models of our own in the form of known ones: the counts are those that BEEM publishes for the size.
#[test]
fn models_with_parameters_have_the_known_counts() {
    let anderson = include_str!("../../../models/anderson.mdve");
    let phils = "default(N, 4)
        byte fork[N];
        define(`phil', `process phil_$1 { state think, one, eat, finish; init think; trans
          think -> one { guard fork[$1] == 0; effect fork[$1] = 1; },
          one -> eat { guard fork[eval(($1+1) % N)] == 0; effect fork[eval(($1+1) % N)] = 1; },
          eat -> finish { effect fork[$1] = 0; },
          finish -> think { effect fork[eval(($1+1) % N)] = 0; };
        }')
        forallx(`phil(x)')
        system async;";
    let peterson = "default(N, 3)
        byte pos[N], step[N];
        forloop(`i', 0, N-1, `process P_`'i { byte j = 0, k = 0; state NCS, CS, wait, q2, q3; init NCS; trans
          NCS -> wait { effect j = 1; },
          wait -> q2 { guard j < N; effect pos[i] = j; },
          q2 -> q3 { effect step[j-1] = i, k = 0; },
          q3 -> q3 { guard k < N && (k == i || pos[k] < j); effect k = k+1; },
          q3 -> wait { guard step[j-1] != i || k == N; effect j = j+1; },
          wait -> CS { guard j == N; },
          CS -> NCS { effect pos[i] = 0; };
        }
        ')
        system async;";
    let cases = [
        (anderson, "3", 1459, 3705),
        (anderson, "4", 29641, 97516),
        (phils, "4", 80, 212),
        (peterson, "3", 12498, 33369),
    ];
    for (text, size, states, edges) in cases {
        let parameters = [("N".to_string(), size.to_string())];
        let program = deltamark_dve::parse_macros(text.as_bytes(), &parameters).expect("a model");
        assert_eq!(counts(program), (states, edges), "N={size}: {text}");
    }
}

/// A channel with one cell in between: 3 values on the way of 1 to 3 places each.
#[test]
fn channels_of_the_prelude_run() {
    let model = |channel: &str| {
        format!(
            "{channel}(c)
             process A {{ byte n; state s; init s; trans s -> s {{ guard n < 3; sync c!n; effect n = n+1; }}; }}
             process B {{ byte m; state s; init s; trans s -> s {{ sync c?m; }}; }}
             system async;"
        )
    };
    let last = |text: &str| {
        let program = deltamark_dve::parse_macros(text.as_bytes(), &[]).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let explored = deltamark_testkit::explore(&deltamark_dve::DveSystem::new(program));
        (explored.states.len(), explored.deadlocks.len())
    };
    // Sent and not yet received, or received: six steps in sequence, and then the end.
    assert_eq!(last(&model("async_channel")), (7, 1));
    // A loss may leave any earlier value at the other end.
    let (states, ends) = last(&model("loosy_channel"));
    assert!(states > 7 && ends > 1, "{states} {ends}");
}

/// Diagnostics of the plain text and positions in the program refer to the file.
#[test]
fn places_are_those_of_the_file() {
    let text =
        "define(`P', `process P_$1 { state s; init s;\n trans s -> s { guard wrong; }; }')\nP(0)\nsystem async;\n";
    let diagnostics = deltamark_dve::parse_macros(text.as_bytes(), &[]).expect_err("it is wrong");
    let span = diagnostics[0].span.expect("a place");
    assert_eq!(&text[span.range()], "wrong", "{diagnostics:?}");
    let right = text.replace("wrong", "true");
    let program = deltamark_dve::parse_macros(right.as_bytes(), &[]).expect("a model");
    assert_eq!(program.transitions[0].place.line, 2);
}

#[test]
fn the_expansion_ends_when_the_run_must() {
    let control = deltamark_core::Control::new();
    control.cancel.cancel();
    let ended = deltamark_dve::macros::expand_under(b"byte x;", &[], &control).unwrap_err();
    assert_eq!(ended[0].stop, Some(deltamark_core::Stop::Cancelled));
}
