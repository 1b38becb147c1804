//! Workers with stacks, and a queue between them that loses messages.
//!
//! In: the number of workers, the height of their stacks, the length of the queue. Out: a system as unlike a
//! net as possible: states of varying width, several initial states, steps that cannot be undone, faults of
//! actions and of states, deadlocks, and components. What stays true: a state is one component for the queue
//! and one for each worker, each a slot with its length (and, for a worker, whether it has stopped) followed
//! by its items, four to a slot.
//!
//! | workers, stack, queue | states, roughly |
//! |---|---|
//! | 2, 1, 1 | 10² |
//! | 2, 2, 2 | 10³ |
//! | 2, 3, 3 | 10⁴ |
//! | 2, 4, 4 | 10⁵ |

use deltamark_core::{Action, Batch, Components, Describe, Fired, Scratch, Slot, System, Value, Widen, Width};

/// Workers with stacks and a lossy queue. An action is `kind + 16 · worker`.
pub struct Workers {
    workers: usize,
    stack: usize,
    queue: usize,
}

/// A decoded state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct World {
    queue: Vec<u8>,
    workers: Vec<Worker>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Worker {
    stopped: bool,
    stack: Vec<u8>,
}

/// The result of a step.
enum WorkerStep {
    To(World),
    Disabled,
    Fault(String),
}

const KINDS: [&str; 6] = ["lose", "push a", "push b", "send", "receive", "stop"];
const LOSE: u32 = 0;
const PUSH_A: u32 = 1;
const PUSH_B: u32 = 2;
const SEND: u32 = 3;
const RECEIVE: u32 = 4;
const STOP: u32 = 5;

impl Workers {
    /// This many workers, with stacks and a queue of at most these numbers of items.
    pub fn new(workers: usize, stack: usize, queue: usize) -> Self {
        assert!((1..=16).contains(&workers) && stack > 0 && queue > 0, "each part has a size");
        Workers { workers, stack, queue }
    }

    fn encode(&self, world: &World) -> Vec<Slot> {
        let mut state = Vec::new();
        let mut component = |flag: bool, items: &[u8]| {
            state.push(items.len() as Slot | Slot::from(flag) << 31);
            state.extend(items.chunks(4).map(|chunk| {
                let mut bytes = [0; 4];
                bytes[..chunk.len()].copy_from_slice(chunk);
                Slot::from_le_bytes(bytes)
            }));
        };
        component(false, &world.queue);
        for worker in &world.workers {
            component(worker.stopped, &worker.stack);
        }
        state
    }

    fn decode(&self, state: &[Slot]) -> World {
        let mut rest = state;
        let mut component = || {
            let (length, flag) = ((rest[0] & !(1 << 31)) as usize, rest[0] >> 31 == 1);
            let items: Vec<u8> = rest[1..].iter().flat_map(|slot| slot.to_le_bytes()).take(length).collect();
            rest = &rest[1 + length.div_ceil(4)..];
            (flag, items)
        };
        let (_, queue) = component();
        let workers = (0..self.workers).map(|_| component()).map(|(stopped, stack)| Worker { stopped, stack });
        World { queue, workers: workers.collect() }
    }

    fn step(&self, world: &World, action: Action) -> WorkerStep {
        let mut world = world.clone();
        let (kind, number) = (action.0 % 16, (action.0 / 16) as usize);
        if kind == LOSE {
            if number > 0 || world.queue.is_empty() {
                return WorkerStep::Disabled;
            }
            world.queue.remove(0);
            return WorkerStep::To(world);
        }
        let Some(worker) = world.workers.get_mut(number).filter(|worker| !worker.stopped) else {
            return WorkerStep::Disabled;
        };
        match kind {
            PUSH_A | PUSH_B if worker.stack.len() < self.stack => worker.stack.push((kind - PUSH_A) as u8),
            SEND if world.queue.len() < self.queue => match worker.stack.pop() {
                Some(item) => world.queue.push(item),
                None => return WorkerStep::Disabled,
            },
            RECEIVE if !world.queue.is_empty() => {
                let item = world.queue.remove(0);
                if worker.stack.last() == Some(&item) {
                    worker.stack.pop();
                } else if worker.stack.len() < self.stack {
                    worker.stack.push(item);
                } else {
                    return WorkerStep::Fault(format!("the stack of worker {number} overflows"));
                }
            }
            STOP => worker.stopped = true,
            _ => return WorkerStep::Disabled,
        }
        WorkerStep::To(world)
    }

    fn all_actions(&self) -> impl Iterator<Item = Action> {
        (0..self.workers as u32).flat_map(|worker| (0..KINDS.len() as u32).map(move |kind| Action(kind + 16 * worker)))
    }
}

impl System for Workers {
    fn width(&self) -> Width {
        Width::Varies
    }

    /// One state in which all stacks are empty, and one a worker that holds an item.
    fn initial(&self, _scratch: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        let empty =
            World { queue: Vec::new(), workers: vec![Worker { stopped: false, stack: Vec::new() }; self.workers] };
        out.push(Action(0), &self.encode(&empty));
        for worker in 0..self.workers {
            let mut world = empty.clone();
            world.workers[worker].stack.push(1);
            out.push(Action(1 + worker as u32), &self.encode(&world));
        }
        Ok(())
    }

    fn successors(&self, _scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        let world = self.decode(source);
        if world.queue.len() == self.queue && world.queue.iter().all(|&item| item == 1) {
            out.fault(None, "the queue is jammed".into());
        }
        for action in self.all_actions() {
            match self.step(&world, action) {
                WorkerStep::To(next) => out.push(action, &self.encode(&next)),
                WorkerStep::Disabled => {}
                WorkerStep::Fault(message) => out.fault(Some(action), message),
            }
        }
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn fire(
        &self,
        _scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        target.clear();
        Ok(match self.step(&self.decode(source), action) {
            WorkerStep::To(next) => {
                target.extend(self.encode(&next));
                Fired::Done
            }
            WorkerStep::Disabled => Fired::Disabled,
            WorkerStep::Fault(message) => Fired::Fault(message),
        })
    }

    fn components(&self) -> Option<&dyn Components> {
        Some(self)
    }
}

impl Components for Workers {
    fn boundaries(&self, state: &[Slot], out: &mut Vec<usize>) {
        let mut start = 0;
        while start < state.len() {
            out.push(start);
            start += 1 + ((state[start] & !(1 << 31)) as usize).div_ceil(4);
        }
    }
}

impl Describe for Workers {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let world = self.decode(state);
        let items = |items: &[u8]| Value::Text(items.iter().map(|&item| char::from(b'a' + item)).collect());
        let mut variables = vec![("queue".to_string(), items(&world.queue))];
        for (number, worker) in world.workers.iter().enumerate() {
            variables.push((format!("stack{number}"), items(&worker.stack)));
            variables.push((format!("stopped{number}"), Value::Int(worker.stopped.into())));
        }
        variables
    }

    fn action(&self, _source: &[Slot], action: Action) -> String {
        let kind = KINDS.get((action.0 % 16) as usize).copied().unwrap_or("?");
        if action.0 == LOSE { kind.into() } else { format!("{kind} ({})", action.0 / 16) }
    }
}
