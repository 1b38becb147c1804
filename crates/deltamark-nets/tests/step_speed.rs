//! The time of a step of many walkers, each with its own action. Run by hand:
//!
//! ```text
//! cargo test --release -p deltamark-nets --test step_speed -- --ignored --nocapture
//! ```

use deltamark_core::{Action, Batch, Block, StateId, States, System, Undone};
use deltamark_nets::{NetSystem, generate::generate};
use deltamark_testkit::Rng;
use std::collections::HashSet;
use std::time::Instant;

/// Steps of a net in random order.
struct Walkers {
    sources: States,
    actions: Vec<Action>,
    targets: States,
    hashes: Vec<u64>,
}

/// Steps of the first states in breadth-first order.
fn walkers(system: &NetSystem, count: usize) -> Walkers {
    'restart: loop {
        let mut scratch = system.scratch();
        let (mut batch, mut block) = (Batch::new(system.width()), Block::new(system.width()));
        system.initial(&mut scratch, &mut batch).expect("nets start narrow");
        let mut states = vec![batch.target(0).to_vec()];
        let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
        let mut steps = Vec::new();
        let mut next = 0;
        while steps.len() < 8 * count && next < states.len() {
            block.reset(system.width());
            batch.reset(system.width());
            block.push(StateId::NAMELESS, &states[next]);
            if system.expand(&mut scratch, &block, &mut batch).is_err() {
                system.widen();
                continue 'restart;
            }
            for index in 0..batch.len() {
                let target = batch.target(index).to_vec();
                steps.push((states[next].clone(), batch.action(index), target.clone(), batch.hash(index)));
                if seen.insert(target.clone()) {
                    states.push(target);
                }
            }
            next += 1;
        }
        Rng::new(1).shuffle(&mut steps);
        steps.truncate(count);
        let width = system.width();
        let mut walkers = Walkers {
            sources: States::new(width),
            actions: Vec::new(),
            targets: States::new(width),
            hashes: Vec::new(),
        };
        for (source, action, target, hash) in steps {
            walkers.sources.push(&source);
            walkers.actions.push(action);
            walkers.targets.push(&target);
            walkers.hashes.push(hash);
        }
        return walkers;
    }
}

/// The best of several runs, in nanoseconds a step.
fn best(steps: usize, mut run: impl FnMut()) -> f64 {
    let once = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..50).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / (50 * steps) as f64
    };
    (0..20).map(|_| once(&mut run)).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_a_step() {
    println!(
        "{:<20}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}",
        "net", "slots", "each", "back", "random", "fire", "unfire", "preds"
    );
    for (family, size) in [("kanban", 5), ("philosophers", 13), ("database-managers", 11)] {
        let system = NetSystem::new(generate(family, size).expect("a family"));
        let steps = walkers(&system, 4096);
        let (mut scratch, count) = (system.scratch(), steps.actions.len());
        let reversible = system.reversible().expect("nets are reversible");
        let width = system.width();
        let (mut targets, mut undone) = (States::new(width), Undone::new(width));
        let each = best(count, || {
            targets.clear();
            system.fire_each(&mut scratch, &steps.sources, &steps.actions, &mut targets);
        });
        let back = best(count, || {
            undone.reset(width);
            reversible.unfire_each(&mut scratch, &steps.targets, &steps.hashes, &steps.actions, &mut undone);
        });
        // Actions that mostly cannot be undone, as with short tags.
        let mut others = steps.actions.clone();
        Rng::new(2).shuffle(&mut others);
        let random = best(count, || {
            undone.reset(width);
            reversible.unfire_each(&mut scratch, &steps.targets, &steps.hashes, &others, &mut undone);
        });
        let mut state = Vec::new();
        let fire = best(count, || {
            for (source, &action) in steps.sources.iter().zip(&steps.actions) {
                system.fire(&mut scratch, source, action, &mut state).expect("it fits");
            }
        });
        let unfire = best(count, || {
            for (target, &action) in steps.targets.iter().zip(&steps.actions) {
                assert!(reversible.unfire(&mut scratch, target, action, &mut state));
            }
        });
        let mut batch = Batch::new(width);
        let predecessors = best(256, || {
            for target in steps.targets.iter().take(256) {
                batch.reset(width);
                reversible.predecessors(&mut scratch, target, &mut batch);
            }
        });
        println!(
            "{:<20}{:>6}{each:>8.2}{back:>8.2}{random:>8.2}{fire:>8.2}{unfire:>8.2}{predecessors:>8.0}",
            format!("{family}-{size}"),
            steps.sources.get(0).len()
        );
    }
}
