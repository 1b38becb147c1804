//! A log that a leader replicates to followers, with elections by the longest log.
//!
//! A much reduced Raft (Ongaro, Ousterhout, *In search of an understandable consensus algorithm*, USENIX ATC 2014): terms,
//! votes that go to a candidate whose log is at least as up to date, entries that are committed once a majority has them.
use deltamark::{Model, Pack, Step};

const NODES: usize = 3;
const TERMS: u8 = 2;
const ENTRIES: usize = 2;

/// A log: the term of each entry, 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
struct Log {
    #[pack(bits = 2)]
    first: u8,
    #[pack(bits = 2)]
    second: u8,
}

impl Log {
    fn entries(self) -> [u8; ENTRIES] {
        [self.first, self.second]
    }

    fn len(self) -> usize {
        self.entries().iter().filter(|&&term| term > 0).count()
    }

    fn push(&mut self, term: u8) {
        if self.first == 0 { self.first = term } else { self.second = term }
    }

    /// What elections compare: the last term, then the length.
    fn rank(self) -> (u8, usize) {
        (if self.second > 0 { self.second } else { self.first }, self.len())
    }
}

#[derive(Clone, Debug, Pack)]
struct State {
    logs: [Log; NODES],
    /// The newest term that each node knows.
    #[pack(bits = 2)]
    terms: [u8; NODES],
    /// The leader of the newest term.
    leader: Option<Node>,
    /// What was ever committed.
    committed: Log,
    /// Whether two different entries were committed at one place.
    broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum Node {
    A,
    B,
    C,
}

const ALL: [Node; NODES] = [Node::A, Node::B, Node::C];

#[derive(Debug)]
enum Action {
    /// The first node is elected by itself and the second.
    Elect(Node, Node),
    Append,
    Replicate(Node),
    Commit,
}

struct ReplicatedLog;

impl Model for ReplicatedLog {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let empty = Log { first: 0, second: 0 };
        vec![State { logs: [empty; NODES], terms: [0; NODES], leader: None, committed: empty, broken: false }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        actions.extend([Action::Append, Action::Commit]);
        for node in ALL {
            actions.push(Action::Replicate(node));
            actions.extend(ALL.into_iter().filter(|&voter| voter != node).map(|voter| Action::Elect(node, voter)));
        }
    }

    fn next(&self, s: &mut State, action: Action) -> Step {
        match (action, s.leader) {
            (Action::Elect(candidate, voter), _) => {
                let (me, other) = (candidate as usize, voter as usize);
                let term = s.terms.into_iter().max().unwrap_or(0) + 1;
                if term > TERMS || s.logs[other].rank() > s.logs[me].rank() {
                    return Step::Disabled;
                }
                (s.terms[me], s.terms[other], s.leader) = (term, term, Some(candidate));
            }
            (Action::Append, Some(leader)) if s.logs[leader as usize].len() < ENTRIES => {
                s.logs[leader as usize].push(s.terms[leader as usize]);
            }
            (Action::Replicate(to), Some(leader)) if to != leader && s.logs[to as usize] != s.logs[leader as usize] => {
                let term = s.terms[leader as usize];
                (s.logs[to as usize], s.terms[to as usize]) = (s.logs[leader as usize], term);
            }
            (Action::Commit, Some(leader)) => {
                let log = s.logs[leader as usize];
                // Only an entry of the leader's own term is committed by counting.
                let own = log.rank().0 == s.terms[leader as usize];
                let copies = s.logs.iter().filter(|&&other| other == log).count();
                if !own || 2 * copies <= NODES || s.committed == log {
                    return Step::Disabled;
                }
                let differs = |(&before, now): (&u8, u8)| before != 0 && before != now;
                s.broken |= s.committed.entries().iter().zip(log.entries()).any(differs);
                s.committed = log;
            }
            _ => return Step::Disabled,
        }
        Step::Taken
    }
}

/// Checks that what is committed stays so; returns states and edges.
pub fn explore() -> Result<(u64, u64), deltamark::ModelError> {
    let report = deltamark::check(ReplicatedLog)
        .invariant("committed entries stay", |s| !s.broken)
        .reachable("a full log is committed", |s| s.committed.len() == ENTRIES)
        .explore_all()
        .run()?;
    report.assert_holds();
    println!("{report}");
    Ok((report.states(), report.edges()))
}

fn main() -> Result<(), deltamark::ModelError> {
    explore().map(drop)
}
