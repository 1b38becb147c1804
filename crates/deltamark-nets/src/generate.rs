//! Parameterised families of nets.
//!
//! In: the name of a family and a number. Out: a [`Net`] that [`Net::validate`] accepts.
//! What stays true: the same name and number always give the same net, node by node, so
//! that results can be compared between runs and versions.

use deltamark_core::Diagnostic;
use deltamark_core::diagnostic::did_you_mean;

use crate::build::{ArcKind, Builder};
use crate::net::Net;

/// A family of nets, in all sizes.
#[derive(Debug)]
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it models, in a few words.
    pub about: &'static str,
    /// The meaning of the parameter.
    pub parameter: &'static str,
    /// The smallest parameter that makes sense.
    pub smallest: u32,
    /// The largest parameter for which the net itself still fits in memory with ease.
    pub largest: u32,
    build: fn(u32) -> Builder,
}

/// Every family.
pub const FAMILIES: [Family; 3] = [
    Family {
        name: "philosophers",
        about: "dining philosophers who take one fork after the other, in either order; they can deadlock",
        parameter: "number of philosophers",
        smallest: 2,
        largest: 100_000,
        build: philosophers,
    },
    Family {
        name: "kanban",
        about: "four production cells, each with a fixed number of kanban cards; no deadlock",
        parameter: "number of cards in each cell",
        smallest: 1,
        largest: 1_000_000,
        build: kanban,
    },
    Family {
        name: "database-managers",
        about: "managers of copies of a data base, who tell each other of every update; no deadlock",
        parameter: "number of managers",
        smallest: 2,
        largest: 300,
        build: database_managers,
    },
];

/// The member of a family for a parameter.
pub fn generate(family: &str, n: u32) -> Result<Net, Diagnostic> {
    let names = FAMILIES.map(|family| family.name);
    let Some(known) = FAMILIES.iter().find(|known| known.name == family) else {
        let diagnostic = Diagnostic::new(format!("there is no family of nets called `{family}`"));
        return Err(diagnostic.help(match did_you_mean(family, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known families are {}", names.join(", ")),
        }));
    };
    if !(known.smallest..=known.largest).contains(&n) {
        return Err(Diagnostic::new(format!("{n} is out of range for `{family}`"))
            .help(format!("the {} goes from {} to {}", known.parameter, known.smallest, known.largest)));
    }
    let mut net = (known.build)(n).net;
    net.name = format!("{family}-{n}");
    Ok(net)
}

/// A transition with all its arcs, each of weight 1.
fn transition(builder: &mut Builder, name: String, inputs: &[u32], outputs: &[u32]) {
    let transition = builder.transition(name);
    for (kind, places) in [(ArcKind::Input, inputs), (ArcKind::Output, outputs)] {
        for &place in places {
            builder.arc(transition, place, kind, 1).expect("a handful of arcs of weight 1 cannot be too heavy");
        }
    }
}

/// Five places and five transitions each. A philosopher's left fork has their own number, the right one that of
/// the neighbour. There are 3^n states: each fork is on the table or held by one of its two neighbours, which
/// determines the state. Two of them are deadlocks: everyone holds the left fork, or everyone the right one.
fn philosophers(n: u32) -> Builder {
    let mut builder = Builder::default();
    let mut each =
        |name: &str, initial| -> Vec<u32> { (1..=n).map(|i| builder.place(format!("{name}_{i}"), initial)).collect() };
    let (thinking, fork) = (each("thinking", 1), each("fork", 1));
    let (has_left, has_right, eating) = (each("has_left", 0), each("has_right", 0), each("eating", 0));
    for i in 0..n as usize {
        let (left, right) = (fork[i], fork[(i + 1) % n as usize]);
        let mut step = |name: &str, inputs: &[u32], outputs: &[u32]| {
            transition(&mut builder, format!("{name}_{}", i + 1), inputs, outputs);
        };
        step("take_left", &[thinking[i], left], &[has_left[i]]);
        step("take_right", &[thinking[i], right], &[has_right[i]]);
        step("then_right", &[has_left[i], right], &[eating[i]]);
        step("then_left", &[has_right[i], left], &[eating[i]]);
        step("put_down", &[eating[i]], &[thinking[i], left, right]);
    }
    builder
}

/// After Ciardo and Tilgner, *On the use of Kronecker operators for the solution of generalized stochastic Petri
/// nets*, 1996. A part enters a cell against a card, is processed, is found good or sent back to be redone, and
/// leaves, freeing the card. What leaves cell 1 enters cells 2 and 3 together, what leaves those two enters cell
/// 4.
fn kanban(n: u32) -> Builder {
    let mut builder = Builder::default();
    let cells: Vec<[u32; 4]> = (1..=4)
        .map(|i| {
            let mut place = |name: &str, initial| builder.place(format!("{name}_{i}"), initial);
            [place("card", n), place("work", 0), place("bad", 0), place("done", 0)]
        })
        .collect();
    for (i, &[_, work, bad, done]) in cells.iter().enumerate() {
        let mut step = |name: &str, from, to| transition(&mut builder, format!("{name}_{}", i + 1), &[from], &[to]);
        step("accept", work, done);
        step("reject", work, bad);
        step("redo", bad, work);
    }
    let [one, two, three, four] = [cells[0], cells[1], cells[2], cells[3]];
    let (card, work, done) = (0, 1, 3);
    let mut step = |name: &str, inputs: &[u32], outputs: &[u32]| {
        transition(&mut builder, name.into(), inputs, outputs);
    };
    step("enter", &[one[card]], &[one[work]]);
    step("split", &[one[done], two[card], three[card]], &[one[card], two[work], three[work]]);
    step("join", &[two[done], three[done], four[card]], &[two[card], three[card], four[work]]);
    step("leave", &[four[done]], &[four[card]]);
    builder
}

/// Jensen's distributed data base, unfolded: a manager who updates sends a message to each of the others, who
/// process it and acknowledge; one update at a time. There are 1 + n·3^(n−1) states: no update, or one of n
/// updates and each message to the others is sent, being processed, or acknowledged.
fn database_managers(n: u32) -> Builder {
    let mut builder = Builder::default();
    let free = builder.place("free", 1);
    let mut each =
        |name: &str, initial| -> Vec<u32> { (1..=n).map(|i| builder.place(format!("{name}_{i}"), initial)).collect() };
    let (inactive, waiting, performing) = (each("inactive", 1), each("waiting", 0), each("performing", 0));
    for sender in 0..n as usize {
        let receivers: Vec<usize> = (0..n as usize).filter(|&receiver| receiver != sender).collect();
        let mut messages = |name: &str, initial| -> Vec<u32> {
            let id = |receiver: &usize| format!("{name}_{}_{}", sender + 1, receiver + 1);
            receivers.iter().map(|receiver| builder.place(id(receiver), initial)).collect()
        };
        let (unused, sent) = (messages("unused", 1), messages("sent", 0));
        let (received, acknowledged) = (messages("received", 0), messages("acknowledged", 0));
        let idle = [&[inactive[sender], free], unused.as_slice()].concat();
        let begun = [&[waiting[sender]], sent.as_slice()].concat();
        let ended = [&[waiting[sender]], acknowledged.as_slice()].concat();
        transition(&mut builder, format!("update_{}", sender + 1), &idle, &begun);
        transition(&mut builder, format!("finish_{}", sender + 1), &ended, &idle);
        for (message, &receiver) in receivers.iter().enumerate() {
            let mut step = |name: &str, inputs: &[u32], outputs: &[u32]| {
                transition(&mut builder, format!("{name}_{}_{}", sender + 1, receiver + 1), inputs, outputs);
            };
            step("receive", &[inactive[receiver], sent[message]], &[performing[receiver], received[message]]);
            step(
                "acknowledge",
                &[performing[receiver], received[message]],
                &[inactive[receiver], acknowledged[message]],
            );
        }
    }
    builder
}
