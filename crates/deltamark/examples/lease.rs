//! A lock service that hands out leases, and a storage service that checks fencing tokens.
//!
//! A client that is paused may believe in a lease that has run out and write over what its successor wrote. Tokens that grow
//! with each lease prevent it, if the storage refuses a token lower than one that it has seen (Kleppmann, *Designing
//! Data-Intensive Applications*, 2017, chapter 8). Without the check the model shows the lost write.
use deltamark::{Model, Pack, Step};

const CLIENTS: usize = 2;
const LEASES: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
enum Client {
    Idle,
    /// Believes to hold the lock, with this token.
    Holds(#[pack(bits = 2)] u8),
}

#[derive(Clone, Debug, Pack)]
struct State {
    clients: [Client; CLIENTS],
    /// Who holds the lease, for the service.
    #[pack(bits = 2)]
    holder: u8,
    /// The token of the newest lease.
    #[pack(bits = 2)]
    newest: u8,
    /// The highest token that the storage has accepted.
    #[pack(bits = 2)]
    written: u8,
    /// Whether a write was accepted after one with a higher token.
    lost: bool,
}

const NOBODY: u8 = CLIENTS as u8;

#[derive(Debug)]
enum Action {
    Grant(usize),
    Expire,
    Write(usize),
    Release(usize),
}

struct Leases {
    fencing: bool,
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        vec![State { clients: [Client::Idle; CLIENTS], holder: NOBODY, newest: 0, written: 0, lost: false }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Expire);
        for who in 0..CLIENTS {
            actions.extend([Action::Grant(who), Action::Write(who), Action::Release(who)]);
        }
    }

    fn next(&self, s: &mut State, action: Action) -> Step {
        match action {
            Action::Grant(who) if s.holder == NOBODY && s.newest < LEASES && s.clients[who] == Client::Idle => {
                s.newest += 1;
                s.holder = who as u8;
                s.clients[who] = Client::Holds(s.newest);
            }
            // The client does not notice.
            Action::Expire if s.holder != NOBODY => s.holder = NOBODY,
            Action::Write(who) => match s.clients[who] {
                Client::Holds(token) if token >= s.written => s.written = token,
                Client::Holds(_) if !self.fencing => s.lost = true,
                _ => return Step::Disabled,
            },
            Action::Release(who) if s.clients[who] != Client::Idle => {
                if s.holder == who as u8 {
                    s.holder = NOBODY;
                }
                s.clients[who] = Client::Idle;
            }
            _ => return Step::Disabled,
        }
        Step::Taken
    }
}

/// Checks the service with and without fencing; returns the states and edges with it, and the length of the trace without.
pub fn explore() -> Result<(u64, u64, usize), deltamark::ModelError> {
    let safe = deltamark::check(Leases { fencing: true }).invariant("no lost write", |s| !s.lost).run()?;
    safe.assert_holds();
    println!("with fencing tokens: {safe}");
    let unsafe_ = deltamark::check(Leases { fencing: false }).invariant("no lost write", |s| !s.lost).run()?;
    println!("without: {unsafe_}");
    let trace = unsafe_.trace("no lost write").expect("a write is lost without fencing");
    Ok((safe.states(), safe.edges(), trace.steps.len()))
}

fn main() -> Result<(), deltamark::ModelError> {
    explore().map(drop)
}
