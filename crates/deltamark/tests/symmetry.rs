//! Symmetry of models in Rust: on random models of alike processes the quotient has as many states as there are orbits, counted by trying
//! all numberings, and gives the same answers, whatever the store, the search and the number of threads. What is no symmetry is found out.

use deltamark::model::predicate;
use deltamark::{Model, ModelCheck, ModelError, ModelSystem, Pack, Search, Step, Symmetric, Verdict};
use deltamark_core::{Action, Control, Goal, Property, Quotient, System, Trace};
use deltamark_store::{CATALOGUE, Need};
use deltamark_testkit::check_symmetry;
use deltamark_testkit::oracle::{Explored, explore, explore_up_to};
use deltamark_testkit::random::Rng;
use std::collections::{BTreeSet, VecDeque};

/// All that can belong to processes, or name them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Pack, Symmetric)]
#[symmetric(p = self.at.len())]
struct State {
    shared: u8,
    #[symmetric(each = p)]
    at: Vec<u8>,
    /// As many as there are processes: nobody.
    #[symmetric(each = p, name = p)]
    next: Vec<u8>,
    #[symmetric(name = p)]
    holder: Option<i8>,
    #[symmetric(each = p, each = p)]
    told: Vec<Vec<bool>>,
    #[symmetric(bits = p)]
    flags: u16,
    #[symmetric(inside)]
    letters: BTreeSet<Letter>,
    #[symmetric(name = p)]
    queue: VecDeque<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Pack, Symmetric)]
enum Letter {
    Lost,
    To {
        kind: u8,
        #[symmetric(name = p)]
        from: u8,
        #[symmetric(name = p)]
        to: u8,
    },
}

#[derive(Clone, Copy, Debug)]
enum Guard {
    At(u8),
    Shared(u8),
    Holds,
    Free,
    Follows,
    Alone,
    Flag(bool),
    Told(bool),
    First,
    Others,
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    Go(u8),
    Share(u8),
    Take,
    GiveTo,
    Release,
    Follow,
    Leave,
    Flip,
    Tell,
    Send(u8),
    Lose,
    Receive,
    Enqueue,
    Dequeue,
    Fail,
}

/// A model whose rules treat all processes alike.
#[derive(Clone)]
struct Alike {
    processes: usize,
    rules: Vec<(Vec<Guard>, Vec<Effect>)>,
}

impl Alike {
    fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let processes = 3 + rng.below(2);
        let guard = |rng: &mut Rng| match rng.below(14) {
            0..4 => Guard::At(rng.below(3) as u8),
            4 => Guard::Shared(rng.below(2) as u8),
            5 => Guard::Holds,
            6 => Guard::Free,
            7 => Guard::Follows,
            8 => Guard::Alone,
            9 | 10 => Guard::Flag(rng.below(2) == 0),
            11 => Guard::Told(rng.below(2) == 0),
            12 => Guard::First,
            _ => Guard::Others,
        };
        let effect = |rng: &mut Rng| match rng.below(18) {
            0..3 => Effect::Go(rng.below(3) as u8),
            3 => Effect::Share(rng.below(2) as u8),
            4 => Effect::Take,
            5 => Effect::GiveTo,
            6 => Effect::Release,
            7 => Effect::Follow,
            8 => Effect::Leave,
            9 => Effect::Flip,
            10 => Effect::Tell,
            11 | 12 => Effect::Send(rng.below(2) as u8),
            13 => Effect::Lose,
            14 => Effect::Receive,
            15 => Effect::Enqueue,
            16 => Effect::Dequeue,
            _ => Effect::Go(1),
        };
        let rules = (0..2 + rng.below(3)).map(|_| {
            let guards = (0..1 + rng.below(3)).map(|_| guard(&mut rng)).collect();
            let effects = (0..1 + rng.below(3)).map(|_| effect(&mut rng)).collect();
            (guards, effects)
        });
        let mut rules: Vec<_> = rules.collect();
        if seed.is_multiple_of(2) {
            rules.push((vec![Guard::At(1), guard(&mut rng), guard(&mut rng)], vec![Effect::Fail]));
        }
        Alike { processes, rules }
    }
}

impl Model for Alike {
    type State = State;
    type Action = (usize, usize, usize); // rule, who, and another one or the same

    fn initial(&self) -> Vec<State> {
        let n = self.processes;
        let state = State {
            shared: 0,
            at: vec![0; n],
            next: vec![n as u8; n],
            holder: None,
            told: vec![vec![false; n]; n],
            flags: 0,
            letters: BTreeSet::new(),
            queue: VecDeque::new(),
        };
        // Not the same for all processes.
        let mut special = state.clone();
        (special.at[1], special.flags) = (1, 0b10);
        vec![state, special]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Self::Action>) {
        let n = self.processes;
        for rule in 0..self.rules.len() {
            actions.extend((0..n * n).map(|pair| (rule, pair / n, pair % n)));
        }
    }

    fn next(&self, s: &mut State, (rule, me, other): Self::Action) -> Step {
        let (guards, effects) = &self.rules[rule];
        let nobody = self.processes as u8;
        let holds = |guard: &Guard| match *guard {
            Guard::At(place) => s.at[me] == place,
            Guard::Shared(value) => s.shared == value,
            Guard::Holds => s.holder == Some(me as i8),
            Guard::Free => s.holder.is_none(),
            Guard::Follows => s.next[me] == other as u8,
            Guard::Alone => s.next[me] == nobody,
            Guard::Flag(flag) => (s.flags >> me & 1 == 1) == flag,
            Guard::Told(told) => s.told[me][other] == told,
            Guard::First => s.queue.front() == Some(&(me as u8)),
            Guard::Others => me != other,
        };
        if !guards.iter().all(holds) {
            return Step::Disabled;
        }
        for effect in effects {
            match *effect {
                Effect::Go(place) => s.at[me] = place,
                Effect::Share(value) => s.shared = value,
                Effect::Take => s.holder = Some(me as i8),
                Effect::GiveTo => s.holder = Some(other as i8),
                Effect::Release => s.holder = None,
                Effect::Follow => s.next[me] = other as u8,
                Effect::Leave => s.next[me] = nobody,
                Effect::Flip => s.flags ^= 1 << me,
                Effect::Tell => s.told[me][other] ^= true,
                Effect::Send(kind) if s.letters.len() < 2 => {
                    s.letters.insert(Letter::To { kind, from: me as u8, to: other as u8 });
                }
                Effect::Lose => {
                    s.letters.insert(Letter::Lost);
                }
                Effect::Receive => {
                    let before = s.letters.len();
                    s.letters.retain(|letter| !matches!(letter, Letter::To { to, .. } if *to == me as u8));
                    s.at[me] = (before - s.letters.len()) as u8 % 3;
                }
                Effect::Enqueue if s.queue.len() < 2 => s.queue.push_back(me as u8),
                Effect::Dequeue => {
                    s.queue.pop_front();
                }
                Effect::Fail if s.at[me] != 0 => return Step::fault("it is not at home"),
                Effect::Send(_) | Effect::Enqueue | Effect::Fail => {}
            }
        }
        Step::Taken
    }

    fn canonical(&self, state: &mut State) {
        state.canonise();
    }
}

/// The state with its processes numbered anew, written without the means of the library.
fn numbered(state: &State, to: &[usize]) -> State {
    let (n, mut new) = (to.len(), state.clone());
    let of = |name: u8| to.get(usize::from(name)).map_or(name, |&to| to as u8);
    for who in 0..n {
        new.at[to[who]] = state.at[who];
        new.next[to[who]] = of(state.next[who]);
        for other in 0..n {
            new.told[to[who]][to[other]] = state.told[who][other];
        }
        let bit = 1 << to[who];
        if state.flags >> who & 1 == 1 { new.flags |= bit } else { new.flags &= !bit }
    }
    new.holder = state.holder.map(|who| of(who as u8) as i8);
    let letter = |letter: &Letter| match *letter {
        Letter::Lost => Letter::Lost,
        Letter::To { kind, from, to } => Letter::To { kind, from: of(from), to: of(to) },
    };
    new.letters = state.letters.iter().map(letter).collect();
    new.queue = state.queue.iter().map(|&who| of(who)).collect();
    new
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for place in 0..n {
            let mut longer = shorter.clone();
            longer.insert(place, n - 1);
            all.push(longer);
        }
    }
    all
}

/// How many orbits there are among states, by trying all numberings.
fn orbits(states: &[State], n: usize) -> usize {
    let all = permutations(n);
    let least = |state: &State| all.iter().map(|to| numbered(state, to)).min();
    states.iter().map(least).collect::<BTreeSet<_>>().len()
}

/// A name, whether it is to be reachable, and what is asked of a state.
type Asked = (&'static str, bool, fn(&State) -> bool);

/// Symmetric properties that need counting, naming and comparing.
fn properties() -> Vec<Asked> {
    vec![
        ("not all at two", false, |s| s.at.iter().any(|&at| at != 2)),
        ("at most one letter", false, |s| s.letters.len() <= 1),
        ("somebody follows himself", true, |s| (0..s.at.len()).any(|who| usize::from(s.next[who]) == who)),
        ("the holder is at one", true, |s| s.holder.is_some_and(|who| s.at[who as usize] == 1)),
        ("two told each other", true, |s| {
            let n = s.at.len();
            (0..n * n).any(|pair| pair / n != pair % n && s.told[pair / n][pair % n] && s.told[pair % n][pair / n])
        }),
        ("all flags", true, |s| s.flags.count_ones() as usize == s.at.len()),
    ]
}

fn checked(model: &Alike) -> ModelCheck<Alike> {
    let check = deltamark::check(model.clone()).deadlock_free().explore_all();
    properties().into_iter().fold(check, |check, (name, reachable, holds)| match reachable {
        true => check.reachable(name, holds),
        false => check.invariant(name, holds),
    })
}

fn asked() -> Vec<Property> {
    let property = |(name, reachable, holds): Asked| {
        let goal = predicate::<State>(holds);
        let goal = if reachable { Goal::Reachable(goal) } else { Goal::Invariant(goal) };
        Property { name: name.into(), text: name.into(), goal }
    };
    properties().into_iter().map(property).chain([Property::deadlock_free()]).collect()
}

/// Random models with the states that the oracle finds.
fn models(most: usize, count: usize) -> impl Iterator<Item = (u64, Alike, Explored)> {
    let explored = move |seed| {
        let model = Alike::random(seed);
        let system = ModelSystem::new(model.clone()).expect("it has initial states");
        let found = explore_up_to(&system, most).filter(|found| found.states.len() > 20)?;
        Some((seed, model, found))
    };
    (0..).filter_map(explored).take(count)
}

#[test]
fn quotients_have_as_many_states_as_there_are_orbits_and_answer_alike() {
    let (mut all, mut few, mut faulty) = (0, 0, 0);
    for (seed, model, found) in models(800, 60) {
        let states: Vec<State> = found.states.iter().map(|slots| deltamark::pack::unpack(slots)).collect();
        let expected = orbits(&states, model.processes);
        let system = ModelSystem::new(model.clone()).expect("it has initial states");
        let sizes = check_symmetry(&system, &system, &asked());
        assert_eq!(sizes, (states.len(), expected), "seed {seed}: {:?}", model.rules);
        let [full, quotient] = [checked(&model), checked(&model).symmetry()]
            .map(|check| check.store("plain").threads(1).run().unwrap_or_else(|error| panic!("seed {seed}: {error}")));
        assert_eq!((full.states(), quotient.states()), (states.len() as u64, expected as u64), "seed {seed}");
        for answer in &full.report().answers {
            let verdicts = [&full, &quotient].map(|report| report.verdict(&answer.name).expect("it was asked"));
            let [one, other] = verdicts.map(|verdict| (verdict.word(), verdict.trace().map(Trace::len)));
            assert_eq!(one, other, "seed {seed}: {}", answer.name);
            // It replays in the model: `trace` does that.
            assert_eq!(
                quotient.trace(&answer.name).map(|path| path.steps.len() + usize::from(path.fault.is_some())),
                other.1
            );
        }
        (all, few, faulty) = (all + states.len(), few + expected, faulty + usize::from(!found.faults.is_empty()));
    }
    println!("{few} orbits of {all} states");
    assert!(few * 4 < all && faulty > 5, "{few} orbits of {all} states, {faulty} models with faults");
}

/// The same model, whose processes are sorted by where they are, whatever else there is: an orbit may have several representatives.
struct Sorted(Alike);

impl Model for Sorted {
    type State = State;
    type Action = (usize, usize, usize);

    fn initial(&self) -> Vec<State> {
        self.0.initial()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Self::Action>) {
        self.0.actions(state, actions);
    }

    fn next(&self, state: &mut State, action: Self::Action) -> Step {
        self.0.next(state, action)
    }

    fn canonical(&self, state: &mut State) {
        let mut order: Vec<usize> = (0..state.at.len()).collect();
        order.sort_by_key(|&who| state.at[who]);
        let mut to = vec![0; order.len()];
        order.iter().enumerate().for_each(|(number, &who)| to[who] = number);
        *state = numbered(state, &to);
    }
}

#[test]
fn where_an_orbit_has_several_representatives_no_answer_is_wrong() {
    let (mut refused, mut answered) = (0, 0);
    for (seed, model, found) in models(500, 20) {
        match deltamark::check(Sorted(model)).deadlock_free().explore_all().symmetry().run() {
            // Its trace cannot be lifted.
            Err(ModelError::Asymmetric(why)) => {
                assert!(why.starts_with("a state has no"), "seed {seed}: {why}");
                refused += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
            Ok(report) => {
                let steps = report.verdict("deadlock-free").and_then(Verdict::trace).map(|trace| trace.len() as u64);
                assert_eq!(steps, found.nearest_deadlock(), "seed {seed}");
                answered += 1;
            }
        }
    }
    assert!(answered > 5, "{answered} answered, {refused} refused");
}

#[test]
fn every_store_search_and_number_of_threads_finds_the_same_quotient() {
    for (seed, model, _) in models(400, 4) {
        let system = ModelSystem::new(model.clone()).expect("it has initial states");
        let quotient = Quotient::new(&system, &system);
        let expected = explore(&quotient);
        let full = explore(&system);
        for info in CATALOGUE.iter().filter(|info| info.guarantee.starts_with("exact")) {
            for &search in Search::ALL.iter().filter(|search| info.takes(search.order())) {
                let threads: &[usize] = if info.threads && search == Search::Bfs { &[1, 2] } else { &[1] };
                for &threads in threads {
                    let label = format!("seed {seed}, {}, {search:?}, {threads} threads", info.name);
                    let run = checked(&model).symmetry().store(info.name).search(search).threads(threads).run();
                    if info.needs.contains(&Need::Undo) || info.needs.contains(&Need::FixedWidth) {
                        assert!(matches!(run, Err(ModelError::Store(_))), "{label}");
                        continue;
                    }
                    let report = run.unwrap_or_else(|error| panic!("{label}: {error}"));
                    let counts = (report.states() as usize, report.edges() as usize, report.deadlocks() as usize);
                    let wanted = (expected.states.len(), expected.edges.len(), expected.deadlocks.len());
                    assert_eq!(counts, wanted, "{label}");
                    let verdict = report.verdict("deadlock-free").expect("it was asked");
                    assert_eq!(matches!(verdict, Verdict::Violated(..)), !full.deadlocks.is_empty(), "{label}");
                    if search == Search::Bfs {
                        let steps = verdict.trace().map(|trace| trace.len() as u64);
                        assert_eq!(steps, full.nearest_deadlock(), "{label}");
                    }
                    for answer in &report.report().answers {
                        assert_eq!(report.trace(&answer.name).is_some(), answer.verdict.trace().is_some(), "{label}");
                    }
                }
            }
        }
    }
}

/// Processes in a ring that hand a token on: they can be rotated, and not permuted. The model says so itself.
struct Ring {
    size: u8,
    wrong: Wrong,
}

#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// Process 0 keeps the token longer.
    Special,
    /// The representative of the representative is another one.
    Restless,
    Panics,
    /// Process 0 fails when the token comes round for the third time.
    Fault,
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Token {
    at: u8,
    held: bool,
    rounds: u16,
}

impl Model for Ring {
    type State = Token;
    type Action = &'static str;

    fn initial(&self) -> Vec<Token> {
        vec![Token { at: 1, held: false, rounds: 0 }]
    }

    fn actions(&self, _: &Token, actions: &mut Vec<&'static str>) {
        actions.extend(["take", "keep", "pass", "count"]);
    }

    fn next(&self, s: &mut Token, action: &'static str) -> Step {
        match action {
            "take" if !s.held => s.held = true,
            "keep" if self.wrong == Wrong::Special && s.held && s.at == 0 => s.held = false,
            "pass" if s.held => (s.at, s.held) = ((s.at + 1) % self.size, false),
            "count" if s.held && s.rounds < 400 => s.rounds += 1,
            "count" if self.wrong == Wrong::Fault && s.rounds == 400 && s.at == 0 => return Step::fault("enough"),
            _ => return Step::Disabled,
        }
        Step::Taken
    }

    fn canonical(&self, s: &mut Token) {
        match self.wrong {
            Wrong::Restless => s.at = (s.at + 1) % self.size,
            Wrong::Panics if s.at == 3 => panic!("three is not named"),
            _ => s.at = 0,
        }
    }
}

fn ring(wrong: Wrong) -> ModelCheck<Ring> {
    deltamark::check(Ring { size: 5, wrong }).store("plain").threads(1).explore_all()
}

#[test]
fn a_symmetry_may_be_written_by_hand() {
    let report = ring(Wrong::Nothing).reachable("many", |s| s.rounds == 400).symmetry().run().expect("a report");
    assert_eq!((report.states(), report.complete()), (802, true));
    let path = report.trace("many").expect("it is reached");
    assert_eq!((path.initial.at, path.steps.len()), (1, 401));
    let text = report.to_string();
    assert!(
        text.starts_with("802 states, 1202 edges, depth 402 of the quotient by symmetry, all explored\n"),
        "{text}"
    );
    let json = report.to_json();
    let reduction =
        r#""reduction":{"kind":"symmetry","rules":[],"places":null,"transitions":null,"decided_by":"the user"}"#;
    assert!(json.contains(reduction) && json.contains(r#""deadlocks":null,"depth":null"#), "{json}");
}

#[test]
fn what_is_no_symmetry_is_found_out() {
    let error = |check: ModelCheck<Ring>| match check.symmetry().run() {
        Err(ModelError::Asymmetric(why)) => why,
        Err(error) => panic!("another error: {error}"),
        Ok(report) => panic!("no error: {report}"),
    };
    let special = error(ring(Wrong::Special));
    assert!(
        special.starts_with("a state has another number of successors than its representative: at = "),
        "{special}"
    );
    let restless = error(ring(Wrong::Restless));
    assert!(restless.starts_with("a representative is not its own representative: at = "), "{restless}");
    assert_eq!(error(ring(Wrong::Panics)), "the model panicked: three is not named");
    let uneven = error(ring(Wrong::Nothing).reachable("second", |s| s.at == 2));
    assert!(uneven.starts_with("`second` is not the same in a state and in its representative: at = 2"), "{uneven}");
    // Farther away than the states that are compared beforehand.
    let late = error(ring(Wrong::Nothing).invariant("late", |s| s.at != 0 || s.rounds < 390));
    assert_eq!(late, "`late` is not the same in a state and in its representative");
    let fault = error(ring(Wrong::Fault));
    assert!(fault.starts_with("a state has no fault, and its representative has one: at = 1"), "{fault}");
}

#[test]
fn a_lasso_goes_round_until_it_is_closed() {
    let system = ModelSystem::new(Ring { size: 5, wrong: Wrong::Nothing }).expect("it has an initial state");
    let quotient = Quotient::new(&system, &system);
    let (take, pass, count) = (Action(0), Action(2), Action(3));
    let lasso = Trace::lasso(0, vec![take, count, pass, take, pass], 3);
    lasso.replay(&quotient).expect("it is one of the quotient");
    let lifted = quotient.lift(&lasso, &Control::new()).expect("no limit").expect("a symmetry");
    assert_eq!((lifted.len(), lifted.cycle()), (3 + 2 * 5, Some(3)));
    lifted.replay(&system).expect("it is one of the system");
}

#[test]
fn what_does_not_go_with_a_symmetry_is_refused() {
    let system = ModelSystem::new(Ring { size: 3, wrong: Wrong::Nothing }).expect("it has an initial state");
    let quotient = Quotient::new(&system, &system);
    let layer: &dyn System = &quotient;
    assert!(layer.reversible().is_none() && layer.facts(&Control::new()).expect("no limit").is_none());
    let check = || deltamark::Check::new(&system).symmetry(&system);
    let refused = [
        check().stats().err().map(|error| error.to_string()),
        check().graph("no such folder/file.dmg").run().err().map(|error| error.to_string()),
        check().reduce(deltamark::Reduce::Stubborn).run().err().map(|error| error.to_string()),
    ];
    for refusal in refused {
        assert!(
            refusal.as_deref().is_some_and(|text| text.starts_with("a symmetry does not go with this: ")),
            "{refusal:?}"
        );
    }
}

/// A directed graph on alike processes: as hard as numbering gets.
#[derive(Clone, Debug, PartialEq, Pack, Symmetric)]
#[symmetric(node = N)]
struct Graph<const N: usize> {
    #[symmetric(each = node, each = node)]
    edges: [[bool; N]; N],
}

#[test]
fn graphs_that_differ_by_their_numbers_are_one() {
    // Rings, which colours do not tell apart: one of six, and two of three.
    let ring = |sizes: &[usize]| {
        let mut edges = [[false; 6]; 6];
        let mut first = 0;
        for &size in sizes {
            (0..size).for_each(|node| edges[first + node][first + (node + 1) % size] = true);
            first += size;
        }
        edges
    };
    let mut found = Vec::new();
    let mut rng = Rng::new(1);
    for edges in [ring(&[6]), ring(&[3, 3]), ring(&[2, 4]), ring(&[2, 2, 2]), [[true; 6]; 6], [[false; 6]; 6]] {
        let mut forms = BTreeSet::new();
        for _ in 0..20 {
            let mut to: Vec<usize> = (0..6).collect();
            rng.shuffle(&mut to);
            let mut graph = Graph { edges: [[false; 6]; 6] };
            (0..36).for_each(|pair| graph.edges[to[pair / 6]][to[pair % 6]] = edges[pair / 6][pair % 6]);
            graph.canonise();
            let before = graph.clone();
            graph.canonise();
            assert_eq!(graph, before, "it is its own representative");
            forms.insert(deltamark::pack::pack(&graph).expect("it fits"));
        }
        assert_eq!(forms.len(), 1, "{edges:?}");
        found.extend(forms);
    }
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 6, "different graphs stay different");
}

#[test]
fn a_numbering_that_would_take_too_long_is_given_up() {
    // Rings of three, in as many orders as there are: no numbering is found, and the graph stays as it is.
    let mut rings = Graph { edges: [[false; 24]; 24] };
    (0..24).for_each(|node| rings.edges[node][node / 3 * 3 + (node + 1) % 3] = true);
    let before = rings.clone();
    rings.canonise();
    assert_eq!(rings, before);
}
