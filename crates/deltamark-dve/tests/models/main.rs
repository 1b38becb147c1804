//! Random models with numbers at and beyond the limits of types: an independent oracle, the reference, the
//! interpreter and native code agree on states, edges, deadlocks, faults and their messages, and every step that
//! is expanded can be fired.
//!
//! A thousand of them run always, a hundred thousand in the long run; `DELTAMARK_RANDOM_MODELS=100000` and
//! `DELTAMARK_RANDOM_SEED=7` set their number, and the first seed. A model that differs is shrunk before it is
//! shown.

mod arithmetic;
mod compare;
mod generate;
mod model;
mod oracle;
mod shrink;

use compare::{Engines, Tried, compare};
use deltamark_testkit::Rng;
use model::Model;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once};

/// The maximum number of states of a model that are compared: usually, and in a few models.
const STATES: [usize; 2] = [120, 700];

thread_local! {
    /// Whether this thread is comparing: then a panic is caught, and its message suffices.
    static COMPARING: Cell<bool> = const { Cell::new(false) };
}

/// Compares a model; a panic is a difference too.
fn difference(model: &Model, engines: Engines, most: usize) -> Result<Tried, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !COMPARING.get() {
                usual(panic)
            }
        }));
    });
    COMPARING.set(true);
    let compared = catch_unwind(AssertUnwindSafe(|| compare(model, engines, most)));
    COMPARING.set(false);
    compared.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        Err(format!("a panic: {}", words.unwrap_or("without words")))
    })
}

/// A thread stops when it has found this many models that differ: each is shrunk, which takes time.
const ENOUGH: usize = 6;

/// Compares the models of some seeds, by a few threads.
fn random_models(seeds: std::ops::Range<u64>, native_one_in: u64) -> Tried {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8) as u64;
    let (sum, different) = (Mutex::new(Tried::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..threads {
            let (seeds, sum, different) = (seeds.clone(), &sum, &different);
            scope.spawn(move || {
                let mut found = 0;
                for seed in seeds.skip(worker as usize).step_by(threads as usize) {
                    match random_model(seed, native_one_in) {
                        Ok(tried) => sum.lock().expect("no thread panics").add(tried),
                        Err(why) => {
                            // Immediately: a run of minutes may be interrupted.
                            eprintln!("{why}");
                            different.lock().expect("no thread panics").push(why);
                            found += 1;
                        }
                    }
                    if found == ENOUGH {
                        break;
                    }
                }
            });
        }
    });
    let different = different.into_inner().expect("no thread panics");
    assert!(different.is_empty(), "{} models differ:\n{}", different.len(), different.join("\n"));
    sum.into_inner().expect("no thread panics")
}

fn random_model(seed: u64, native_one_in: u64) -> Result<Tried, String> {
    let mut rng = Rng::new(seed);
    let model = generate::generate(&mut rng);
    let after = [0, 0, 1, 40][rng.below(4)];
    let engines = if seed.is_multiple_of(native_one_in) { Engines::Native(after) } else { Engines::Interpreter };
    let most = STATES[usize::from(rng.below(20) == 0)];
    difference(&model, engines, most).map_err(|why| {
        let small = shrink::shrink(model, |model| difference(model, engines, most).is_err());
        let why = difference(&small, engines, most).err().unwrap_or(why);
        format!("seed {seed}: {why}\n{small}\n")
    })
}

#[test]
fn a_thousand_random_models_agree() {
    let tried = random_models(0..1000, 1);
    assert!(tried.states > 5_000 && tried.edges > 5_000 && tried.faults > 3_000 && tried.deadlocks > 50, "{tried:?}");
}

/// Native code read a table of positions before it had checked the index, and the process died: no panic, so that
/// the model could not be shrunk.
#[test]
#[cfg(feature = "native")]
fn an_index_is_checked_before_it_is_used() {
    let tried = random_models(6_000_017_607..6_000_017_608, 1);
    assert!(tried.native == 1 && tried.faults > 0, "{tried:?}");
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

#[test]
#[ignore = "long: minutes; part of scripts/long"]
fn very_many_random_models_agree() {
    let first = setting("DELTAMARK_RANDOM_SEED", 1_000_000);
    let count = setting("DELTAMARK_RANDOM_MODELS", 100_000);
    println!("{count} models: {:?}", random_models(first..first + count, 1));
}
