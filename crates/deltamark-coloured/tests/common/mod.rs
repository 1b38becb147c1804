//! Random coloured nets, and a naive explorer of such nets.
//!
//! What stays true: the explorer knows nothing of plans, tries or tables. It tries every value of every
//! variable and counts tokens in maps.

use std::collections::{BTreeMap, HashMap, VecDeque};

use deltamark_coloured::Net;
use deltamark_coloured::net::{
    Arc, Binary, Domain, Expr, ExprKind, FaultKind, Iteration, Place, PlaceId, Role, Term, Transition, Type, TypeId,
    Unary, Value, ValueShape, Var, Variable,
};
use deltamark_core::Span;
use deltamark_testkit::Rng;

/// The number of tuples that the iterations of a term expand to, as far as its condition does not depend on
/// variables.
#[allow(dead_code)]
pub fn times(term: &Term) -> i64 {
    let frame = vec![0; 16];
    let mut frames = 0;
    match term.iterations.as_slice() {
        [] => frames = 1,
        [Iteration { variable, domain: Domain::Range(low, high) }] => {
            let (low, high) = (eval(low, &frame, &Vec::new()), eval(high, &frame, &Vec::new()));
            for value in low..=high {
                let mut frame = frame.clone();
                frame[variable.0 as usize] = value;
                let counts = |condition: &Expr| eval(condition, &frame, &Vec::new()) != 0;
                frames += i64::from(term.condition.as_ref().is_none_or(counts));
            }
        }
        _ => unreachable!("the nets here iterate over one range"),
    }
    frames
}

/// A marking: for each place the multiplicity of each token.
pub type Marking = Vec<BTreeMap<Vec<i64>, i64>>;

/// What an explorer counts.
#[derive(Debug, PartialEq, Eq)]
pub struct Counts {
    pub states: usize,
    pub edges: usize,
    pub deadlocks: usize,
    /// Steps that are faults.
    pub faults: usize,
    /// States in which a guard faults.
    pub wrong: usize,
}

/// The maximum number of tokens of one colour that is counted in a place without a capacity, if the net is
/// not unfolded.
pub const COUNTED: i64 = u32::MAX as i64;

pub fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::at(0))
}

pub fn int(number: i32) -> Expr {
    Expr::int(number, Span::at(0))
}

pub fn var(number: u32) -> Expr {
    expr(ExprKind::Var(Var(number)))
}

pub fn binary(op: Binary, one: Expr, other: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(one), Box::new(other)))
}

pub fn term(factor: i64, token: Vec<Expr>) -> Term {
    Term { iterations: Vec::new(), condition: None, factor, token, spread: false, span: Span::at(0) }
}

/// A type of integers.
pub fn discrete(name: &str, low: i32, high: i32) -> Type {
    Type { name: name.into(), shape: ValueShape::Discrete { low, high, names: None } }
}

fn bounds(net: &Net, of: TypeId) -> (i32, i32) {
    match net.types[of.0 as usize].shape {
        ValueShape::Discrete { low, high, .. } => (low, high),
        _ => unreachable!("the nets here have discrete types"),
    }
}

/// All values of a type.
fn values(net: &Net, of: TypeId) -> std::ops::RangeInclusive<i64> {
    let (low, high) = bounds(net, of);
    low.into()..=high.into()
}

/// The value of an expression that cannot fault.
fn eval(expression: &Expr, frame: &[i64], marking: &Marking) -> i64 {
    value(expression, frame, marking).expect("only guards and outputs go wrong in the nets here")
}

/// A number within the range of arithmetic.
fn computed(number: i128) -> Option<i64> {
    (number.abs() <= 1 << 62).then_some(number as i64)
}

/// The value of an expression, if it has one.
fn value(expression: &Expr, frame: &[i64], marking: &Marking) -> Option<i64> {
    Some(match &expression.kind {
        ExprKind::Const(Value::Int(number)) => i64::from(*number),
        ExprKind::Var(var) => frame[var.0 as usize],
        ExprKind::Total(place) => marking[place.0 as usize].values().sum(),
        ExprKind::Distinct(place) => marking[place.0 as usize].len() as i64,
        ExprKind::Cycle { of, low, high, by } => {
            let low = i64::from(*low);
            low + (value(of, frame, marking)? - low + i64::from(*by)).rem_euclid(i64::from(*high) - low + 1)
        }
        ExprKind::Wrap(of, modulus) => value(of, frame, marking)?.rem_euclid((*modulus).into()),
        ExprKind::Check { of, low, high, .. } => {
            let number = value(of, frame, marking)?;
            (i64::from(*low) <= number && number <= i64::from(*high)).then_some(number)?
        }
        ExprKind::If(condition, one, other) => {
            value(if value(condition, frame, marking)? != 0 { one } else { other }, frame, marking)?
        }
        ExprKind::Unary(Unary::Neg, of) => -value(of, frame, marking)?,
        ExprKind::Unary(Unary::Not, of) => i64::from(value(of, frame, marking)? == 0),
        ExprKind::Binary(Binary::Or, one, other) => {
            i64::from(value(one, frame, marking)? != 0 || value(other, frame, marking)? != 0)
        }
        ExprKind::Binary(Binary::And, one, other) => {
            i64::from(value(one, frame, marking)? != 0 && value(other, frame, marking)? != 0)
        }
        ExprKind::Binary(op, one, other) => {
            let (one, other) = (value(one, frame, marking)?, value(other, frame, marking)?);
            let (a, b) = (i128::from(one), i128::from(other));
            match op {
                Binary::Add => computed(a + b)?,
                Binary::Sub => computed(a - b)?,
                Binary::Mul => computed(a * b)?,
                Binary::Div => one.checked_div(other)?,
                // The sign is that of the dividend.
                Binary::Rem => one.checked_rem(other)?,
                Binary::Eq => i64::from(one == other),
                Binary::Ne => i64::from(one != other),
                Binary::Lt => i64::from(one < other),
                Binary::Le => i64::from(one <= other),
                Binary::Gt => i64::from(one > other),
                Binary::Ge => i64::from(one >= other),
                Binary::And | Binary::Or => unreachable!("both are above"),
            }
        }
        other => unreachable!("the nets here have no {other:?}"),
    })
}

/// The tokens of a label, if all have values. Tokens of factor 0 have an entry of 0.
fn label(terms: &[Term], frame: &[i64], marking: &Marking, out: &mut BTreeMap<Vec<i64>, i64>) -> Option<()> {
    for term in terms {
        let mut frames = vec![frame.to_vec()];
        for Iteration { variable, domain } in &term.iterations {
            let Domain::Range(low, high) = domain else { unreachable!("the nets here iterate over ranges") };
            let (low, high) = (eval(low, frame, marking), eval(high, frame, marking));
            frames = frames
                .into_iter()
                .flat_map(|frame| {
                    (low..=high).map(move |value| {
                        let mut frame = frame.clone();
                        frame[variable.0 as usize] = value;
                        frame
                    })
                })
                .collect();
        }
        for frame in frames {
            if term.condition.as_ref().is_none_or(|condition| eval(condition, &frame, marking) != 0) {
                let token =
                    term.token.iter().map(|component| value(component, &frame, marking)).collect::<Option<_>>()?;
                *out.entry(token).or_default() += term.factor;
            }
        }
    }
    Some(())
}

/// Every assignment of values to the variables, lets computed.
fn assignments(net: &Net, transition: &Transition) -> Vec<Vec<i64>> {
    let mut frames = vec![vec![0; transition.frame as usize]];
    for (number, variable) in transition.variables.iter().enumerate() {
        let values = values(net, variable.of);
        frames = frames
            .into_iter()
            .flat_map(|frame| {
                let values: Vec<i64> = match &variable.role {
                    Role::Let(value) => vec![eval(value, &frame, &Vec::new())],
                    Role::Inhibitor => vec![0],
                    Role::Bound | Role::Pick(_) => values.clone().collect(),
                };
                values.into_iter().map(move |value| {
                    let mut frame = frame.clone();
                    frame[number] = value;
                    frame
                })
            })
            .collect();
    }
    frames
}

/// Tokens by place.
type Gathered = BTreeMap<u32, BTreeMap<Vec<i64>, i64>>;

fn gathered(arcs: &[Arc], frame: &[i64], marking: &Marking) -> Option<Gathered> {
    let mut all = Gathered::new();
    for arc in arcs {
        label(&arc.label, frame, marking, all.entry(arc.place.0).or_default())?;
    }
    Some(all)
}

fn blocked(net: &Net, transition: &Transition, frame: &[i64], marking: &Marking) -> bool {
    let own: Vec<usize> = (0..transition.variables.len())
        .filter(|&number| matches!(transition.variables[number].role, Role::Inhibitor))
        .collect();
    let mut frames = vec![frame.to_vec()];
    for number in own {
        let values = values(net, transition.variables[number].of);
        frames = frames
            .into_iter()
            .flat_map(|frame| {
                values.clone().map(move |value| {
                    let mut frame = frame.clone();
                    frame[number] = value;
                    frame
                })
            })
            .collect();
    }
    let any = transition.inhibitors.iter().any(|arc| !arc.label.is_empty());
    any && frames.iter().any(|frame| {
        transition.inhibitors.iter().all(|arc| {
            arc.label.iter().all(|term| {
                let token: Vec<i64> = term.token.iter().map(|component| eval(component, frame, marking)).collect();
                marking[arc.place.0 as usize].get(&token).is_some_and(|&count| count >= term.factor)
            })
        })
    })
}

/// The markings that the enabled bindings lead to, `None` for a binding that is a fault; and whether a guard
/// faults. It is evaluated only if there are tokens for all inputs.
fn steps(net: &Net, marking: &Marking) -> (Vec<Option<Marking>>, bool) {
    let mut enabled = Vec::new();
    let mut wrong = false;
    for transition in &net.transitions {
        for frame in assignments(net, transition) {
            let inputs =
                gathered(&transition.inputs, &frame, marking).expect("inputs do not go wrong in the nets here");
            let there = inputs.iter().all(|(place, tokens)| {
                tokens
                    .iter()
                    .all(|(token, &count)| marking[*place as usize].get(token).copied().unwrap_or(0) >= count.max(1))
            });
            if !there {
                continue;
            }
            let guard = transition.guard.as_ref().map_or(Some(1), |guard| value(guard, &frame, marking));
            wrong |= guard.is_none();
            if guard.is_some_and(|guard| guard != 0) && !blocked(net, transition, &frame, marking) {
                let priority = transition.priority.as_ref().map_or(0, |priority| eval(priority, &frame, marking));
                enabled.push((priority, transition, frame, inputs));
            }
        }
    }
    let most = enabled.iter().map(|&(priority, ..)| priority).max();
    enabled.retain(|&(priority, ..)| Some(priority) == most);
    let steps = enabled
        .into_iter()
        .map(|(_, transition, frame, inputs)| {
            let mut next = marking.clone();
            for (place, tokens) in &inputs {
                for (token, count) in tokens {
                    *next[*place as usize].entry(token.clone()).or_default() -= count;
                }
            }
            for (place, tokens) in gathered(&transition.outputs, &frame, marking)? {
                for (token, count) in tokens {
                    *next[place as usize].entry(token).or_default() += count;
                }
            }
            for place in &mut next {
                place.retain(|_, count| *count != 0);
            }
            let fits = |(place, tokens): (&Place, &BTreeMap<Vec<i64>, i64>)| {
                place.capacity.is_none_or(|most| tokens.values().all(|&count| count <= i64::from(most)))
            };
            net.places.iter().zip(&next).all(fits).then_some(next)
        })
        .collect();
    (steps, wrong)
}

/// Explores a net; `None` if it has more than `most` states, or initially more tokens than a place may hold.
/// Also returns whether a place ever holds more than [`COUNTED`] tokens of one colour.
pub fn explore_dully(net: &Net, most: usize) -> Option<(Counts, bool)> {
    let mut first: Marking = Vec::new();
    for place in &net.places {
        let mut tokens = BTreeMap::new();
        label(&place.initial, &vec![0; place.frame as usize], &Vec::new(), &mut tokens)?;
        tokens.retain(|_, count| *count != 0);
        if tokens.values().any(|&count| count > i64::from(place.capacity.unwrap_or(u32::MAX))) {
            return None;
        }
        first.push(tokens);
    }
    let mut seen: HashMap<Marking, ()> = HashMap::from([(first.clone(), ())]);
    let mut queue = VecDeque::from([first]);
    let mut counts = Counts { states: 0, edges: 0, deadlocks: 0, faults: 0, wrong: 0 };
    let mut beyond = false;
    while let Some(marking) = queue.pop_front() {
        counts.states += 1;
        beyond |= marking.iter().any(|tokens| tokens.values().any(|&count| count > COUNTED));
        if seen.len() > most {
            return None;
        }
        let (steps, wrong) = steps(net, &marking);
        counts.wrong += usize::from(wrong);
        counts.deadlocks += usize::from(steps.is_empty() && !wrong);
        for next in steps {
            match next {
                None => counts.faults += 1,
                Some(next) => {
                    counts.edges += 1;
                    if seen.insert(next.clone(), ()).is_none() {
                        queue.push_back(next);
                    }
                }
            }
        }
    }
    Some((counts, beyond))
}

/// The features of random nets.
#[derive(Clone, Copy)]
pub struct Features {
    pub capacities: bool,
    pub priorities: bool,
    pub inhibitors: bool,
    /// Guards that may divide by zero.
    pub divisions: bool,
    /// Types, constants, factors and capacities at the limits of arithmetic, and expressions that exceed
    /// them.
    pub edges: bool,
}

/// Bounds of types.
const EDGES: [(i32, i32); 9] = [
    (0, 2),
    (0, 1),
    (-1, 1),
    (0, 0),
    (254, 256),
    (65_534, 65_536),
    (i32::MAX - 2, i32::MAX),
    (i32::MIN, i32::MIN + 2),
    (i32::MIN, i32::MIN),
];

/// Values close to which factors and capacities are, and multiples of them.
const SCALES: [i64; 6] = [1, 255, 1 << 16, 1 << 30, i32::MAX as i64 - 1, i32::MAX as i64];

/// A factor of a label.
fn scaled(rng: &mut Rng, scale: i64) -> i64 {
    let near = [scale, scale, scale, scale + 1, scale - 1, 2 * scale, 1][rng.below(7)];
    near.clamp(0, i32::MAX.into())
}

/// An integer expression over the first variables, which may fault.
fn wild(rng: &mut Rng, net: &Net, variables: usize, depth: usize) -> Expr {
    if depth == 0 || rng.below(4) == 0 {
        let (low, high) = EDGES[rng.below(EDGES.len())];
        return match rng.below(4) {
            0 => int([low, high, 0, 1, -1, 255, i32::MAX, i32::MIN][rng.below(8)]),
            _ if variables > 0 => var(rng.below(variables) as u32),
            _ => int(low),
        };
    }
    let sub = |rng: &mut Rng| Box::new(wild(rng, net, variables, depth - 1));
    expr(match rng.below(12) {
        0 => ExprKind::Unary(Unary::Neg, sub(rng)),
        1 => ExprKind::Wrap(sub(rng), [1, 2, 3, 256, i32::MAX][rng.below(5)]),
        2 => {
            let (low, high) = EDGES[rng.below(EDGES.len())];
            ExprKind::Cycle { of: sub(rng), low, high, by: [1, -1][rng.below(2)] }
        }
        3 => ExprKind::If(Box::new(wild_truth(rng, net, variables, depth - 1)), sub(rng), sub(rng)),
        4 => {
            let (low, high) = EDGES[rng.below(EDGES.len())];
            ExprKind::Check { of: sub(rng), low, high, fault: FaultKind::Cast }
        }
        op => {
            let op = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem][op % 5];
            ExprKind::Binary(op, sub(rng), sub(rng))
        }
    })
}

/// A truth value, which may fault.
fn wild_truth(rng: &mut Rng, net: &Net, variables: usize, depth: usize) -> Expr {
    if depth > 0 && rng.below(2) == 0 {
        let mut sub = || Box::new(wild_truth(rng, net, variables, depth - 1));
        let (one, other) = (sub(), sub());
        return expr(match rng.below(5) {
            0 => ExprKind::Unary(Unary::Not, one),
            1 | 2 => ExprKind::Binary(Binary::Or, one, other),
            _ => ExprKind::Binary(Binary::And, one, other),
        });
    }
    let op = [Binary::Eq, Binary::Ne, Binary::Lt, Binary::Le, Binary::Gt, Binary::Ge][rng.below(6)];
    binary(op, wild(rng, net, variables, depth.min(2)), wild(rng, net, variables, depth.min(2)))
}

/// A random net.
pub fn random_net(seed: u64, features: Features) -> Net {
    let mut rng = Rng::new(seed);
    let mut net = Net { name: format!("random-{seed}"), ..Net::default() };
    net.types = vec![discrete("three", 0, 2), discrete("two", 0, 1)];
    if features.edges {
        let mut edge = || EDGES[rng.below(EDGES.len())];
        net.types = [("one", edge()), ("other", edge())].map(|(name, (low, high))| discrete(name, low, high)).into();
    }
    let scale = if features.edges { SCALES[rng.below(SCALES.len())] } else { 1 };
    for number in 0..2 + rng.below(3) {
        let domain: Vec<TypeId> = (0..rng.below(3)).map(|_| TypeId(rng.below(2) as u32)).collect();
        let initial = (0..1 + rng.below(2)).map(|_| {
            let factor = if features.edges {
                scaled(&mut rng, scale).saturating_mul(1 + rng.below(2) as i64).min(i32::MAX.into())
            } else {
                1
            };
            term(factor, domain.iter().map(|&of| some_value(&mut rng, &net, of)).collect())
        });
        let initial = initial.collect();
        let mut capacity = (features.capacities && rng.below(2) == 0).then(|| 2 + rng.below(2) as u32);
        if features.edges && capacity.is_some() {
            let near = [scale, 2 * scale, 3 * scale, 2 * scale + 1, i32::MAX.into(), u32::MAX.into(), u32::MAX.into()];
            capacity = Some(near[rng.below(7)].min(u32::MAX.into()) as u32);
        }
        let name = format!("p{number}");
        net.places.push(Place { name, domain, initial, frame: 0, capacity, span: Span::at(0) });
    }
    for number in 0..2 + rng.below(3) {
        let transition = random_transition(&mut rng, &net, number, features, scale);
        net.transitions.push(transition);
    }
    net
}

/// A constant of a type.
fn some_value(rng: &mut Rng, net: &Net, of: TypeId) -> Expr {
    let (low, high) = bounds(net, of);
    int(low + rng.below((high - low) as usize + 1) as i32)
}

fn random_transition(rng: &mut Rng, net: &Net, number: usize, features: Features, scale: i64) -> Transition {
    let mut variables: Vec<Variable> = (0..rng.below(3))
        .map(|number| Variable { name: format!("x{number}"), of: TypeId(rng.below(2) as u32), role: Role::Bound })
        .collect();
    if let Some(first) = variables.first().map(|variable| variable.of) {
        match rng.below(6) {
            0 => {
                let role = Role::Let(next(net, var(0), first, 1));
                variables.push(Variable { name: "computed".into(), of: first, role });
            }
            1 => {
                let (low, high) = bounds(net, first);
                let role = Role::Pick(Domain::Range(int(low), int(high)));
                variables.push(Variable { name: "picked".into(), of: first, role });
            }
            _ => {}
        }
    }
    let usable = variables.len();
    if features.inhibitors && rng.below(3) == 0 {
        let of = TypeId(rng.below(2) as u32);
        variables.push(Variable { name: "any".into(), of, role: Role::Inhibitor });
    }
    let frame = variables.len() as u32 + 1;
    let iterated = Var(frame - 1);
    let component = |rng: &mut Rng, of: TypeId, from: &[Variable], wildly: bool| {
        if wildly && rng.below(3) == 0 {
            let (low, high) = bounds(net, of);
            let of = Box::new(wild(rng, net, from.len(), 3));
            return expr(match rng.below(3) {
                0 => ExprKind::Cycle { of, low, high, by: 1 },
                _ => ExprKind::Check { of, low, high, fault: FaultKind::OutOfRange },
            });
        }
        let fitting: Vec<u32> =
            (0..).zip(from).filter(|(_, variable)| variable.of == of).map(|(number, _)| number).collect();
        match rng.below(5) {
            0 => some_value(rng, net, of),
            1 if !fitting.is_empty() => next(net, var(fitting[rng.below(fitting.len())]), of, 1),
            _ if !fitting.is_empty() => var(fitting[rng.below(fitting.len())]),
            _ => some_value(rng, net, of),
        }
    };
    let arcs = |rng: &mut Rng, input: bool| -> Vec<Arc> {
        (0..rng.below(3) + usize::from(input))
            .map(|_| {
                let place = rng.below(net.places.len());
                let domain = &net.places[place].domain;
                let terms = (0..1 + rng.below(5) / 4).map(|_| {
                    let token = domain
                        .iter()
                        .map(|&of| component(rng, of, &variables[..usable], features.edges && !input))
                        .collect();
                    let mut factor = [1, 1, 1, 1, 2, 0][rng.below(if input { 6 } else { 5 })];
                    if features.edges && factor > 0 {
                        factor = scaled(rng, scale).max(i64::from(!input));
                    }
                    let mut made = term(factor, token);
                    if let (0, Some(&of)) = (rng.below(8), domain.first()) {
                        // All values in the first component, perhaps under a condition.
                        let (low, high) = bounds(net, of);
                        let domain = Domain::Range(int(low), int(high));
                        made.iterations = vec![Iteration { variable: iterated, domain }];
                        made.token[0] = expr(ExprKind::Var(iterated));
                        made.factor = if features.edges { scaled(rng, scale).max(1) } else { 1 };
                        if rng.below(2) == 0 {
                            made.condition = Some(binary(Binary::Ne, expr(ExprKind::Var(iterated)), int(low)));
                        }
                    }
                    made
                });
                Arc { place: PlaceId(place as u32), label: terms.collect() }
            })
            .collect()
    };
    let (inputs, outputs) = (arcs(rng, true), arcs(rng, false));
    let mut inhibitors = Vec::new();
    if features.inhibitors && rng.below(2) == 0 {
        let place = rng.below(net.places.len());
        let domain = &net.places[place].domain;
        let token = domain.iter().map(|&of| component(rng, of, &variables, false)).collect();
        let factor = if features.edges { scaled(rng, scale).max(1) } else { 1 + rng.below(2) as i64 };
        inhibitors.push(Arc { place: PlaceId(place as u32), label: vec![term(factor, token)] });
    }
    let divided = |number: u32| binary(Binary::Ne, binary(Binary::Div, int(2), var(number)), int(1));
    let guard = match usable {
        _ if features.edges && rng.below(3) > 0 => Some(wild_truth(rng, net, usable, 3)),
        0 => None,
        1 if features.divisions => Some(divided(0)),
        // A conjunct that faults, before, after and without one that may rule it out.
        _ if features.divisions => Some(match rng.below(4) {
            0 => binary(Binary::And, divided(0), binary(Binary::Ne, var(1), int(1))),
            1 => binary(Binary::And, binary(Binary::Ne, var(1), int(1)), divided(0)),
            2 => binary(Binary::And, binary(Binary::Ne, var(0), int(0)), divided(0)),
            _ => binary(Binary::And, divided(1), divided(0)),
        }),
        _ if rng.below(2) == 0 => None,
        1 => Some(binary(Binary::Ne, var(0), int(1))),
        _ => Some(binary(Binary::And, binary(Binary::Ne, var(0), var(1)), binary(Binary::Lt, var(1), int(2)))),
    };
    let priority = (features.priorities && rng.below(2) == 0).then(|| {
        let total = expr(ExprKind::Total(PlaceId(rng.below(net.places.len()) as u32)));
        if rng.below(2) == 0 || usable == 0 { total } else { var(0) }
    });
    // A variable of the inhibitors must not occur anywhere else, and need not occur there.
    let name = format!("t{number}");
    let span = Span::at(0);
    Transition {
        name,
        variables,
        frame,
        inputs,
        outputs,
        inhibitors,
        resets: Vec::new(),
        guard,
        priority,
        description: None,
        span,
    }
}

fn next(net: &Net, of: Expr, sort: TypeId, by: i32) -> Expr {
    let (low, high) = bounds(net, sort);
    expr(ExprKind::Cycle { of: Box::new(of), low, high, by })
}
