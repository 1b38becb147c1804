//! Expressions over markings, as properties use them.

use crate::*;
use deltamark_core::{Block, ObservableKind, StateId, System};

fn net() -> String {
    file(
        &format!("{BASE} val limit = 2; exception Bad; fun sum ms = foldl (op +) 0 ms; fun bad _ = raise Bad;"),
        &[("Buffer", "INT", "2`1++1`5"), ("Other_Place", "INT", "")],
        &[("T", "", "")],
        &[("PtoT", "T", "Buffer", "n")],
    )
}

/// The value of an expression in the initial state.
fn value(text: &str) -> Result<i64, String> {
    let system = load(&net()).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let observe = system.observe().expect("nets can be observed");
    let found = observe.own_expression(text).ok_or("no expression")?;
    let observable = found.map_err(|wrong| {
        let span = wrong[0].span.map_or(0, |span| span.start);
        format!("{span}: {}", wrong[0].message)
    })?;
    assert_eq!(observe.resolve(text), Some(observable));
    let mut scratch = system.scratch();
    let state = explore(&system).states[0].clone();
    let mut block = Block::new(system.width());
    block.push(StateId::NAMELESS, &state);
    let value = observe.read(&mut scratch, &state, observable);
    assert_eq!(
        observable.kind == ObservableKind::Bool,
        value == deltamark_core::UNDEFINED || text.contains(['=', '<'])
    );
    Ok(value)
}

#[test]
fn markings_are_multisets_in_ml() {
    for (text, expected) in [
        ("size (Mark Buffer) <= 3", 1),
        ("size (Mark Buffer) <= limit", 0),
        ("size (Mark Buffer)", 3),
        ("cf (1, Mark.Top'Buffer 1)", 2),
        ("Mark Top'Buffer 1 == 1`5++2`1", 1),
        ("Mark \"Top'Buffer 1\" <<= 9`1", 0),
        ("Mark \"Other Place\" = empty", 1),
        ("sum (Mark Buffer)", 7),
        ("List.all (fn k => k < 6) (Mark Buffer) andalso size (Mark Other_Place) = 0", 1),
        ("bad (Mark Buffer) = true", deltamark_core::UNDEFINED),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_wrong_points_into_the_expression() {
    for (text, expected) in [
        ("size (Mark Bufer) <= 3", "11: there is no place `Bufer`; did you mean `Buffer`?"),
        ("Mark Buffer = 3", "14: the right side of `=`: expected the type int list, found int"),
        ("cf (\"a\", Mark Buffer)", "expected the type"),
        ("size (Mark Buffer) <= ", "expected an expression"),
        ("size Mark", "`Mark` is followed by the name of a place"),
        ("size (Mark Buffer) = n", "`n` is a variable of the net"),
        ("Mark Buffer", "expected the type bool"),
        ("Mark.Top'Buffer 2 = empty", "there is no place"),
    ] {
        let found = value(text).err().unwrap_or_default();
        assert!(found.contains(expected), "{text}: {found}");
    }
    assert_eq!(value("Buffer <= 3"), Err("no expression".into()));
}
