//! Unfolds a coloured net into a P/T net.
//!
//! In: a coloured net. Out: a P/T net with a place for each token that can ever be in a place, and a
//! transition for each binding that can ever be enabled; or why that is impossible. What stays true: states
//! and edges of the two nets correspond one to one. Two bindings with the same effect stay two transitions.
//!
//! # Which tokens are possible
//! An over-approximation by saturation: as if tokens were never removed and never ran out, all bindings are
//! found over the tokens known so far, their outputs become known, and so on until a fixed point. The tries
//! of [`bind`](crate::bindings::bind) memoise the bindings, so a round costs little more than what is new in it.
//!
//! # What is omitted
//! A token that no transition adds or takes is constant: transitions that need it lose the arc or, if there
//! is not enough of it, can never fire and are omitted.
//!
//! # What cannot be unfolded
//! Priorities, guards that read the marking, several inhibitors that block only together, bindings whose
//! evaluation may fault, and nets with more tokens or bindings than a limit.

use std::collections::{BTreeSet, HashMap};

use deltamark_core::{Control, Stop};
use deltamark_nets as pt;

use crate::bindings::bind::Binder;
use crate::engine::{Engine, Marking};
use crate::unfolding::order::order;
use crate::unfolding::unfolded::NotUnfolded;

/// The count of each token in a saturated place.
const PLENTY: u32 = i32::MAX as u32;

/// The maximum number of steps of the search for bindings, for each binding allowed.
const VISITS: usize = 5;

/// Limits on the size of an unfolded net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfoldLimits {
    /// The maximum number of bindings, i.e. transitions.
    pub transitions: usize,
    /// The maximum number of tokens, i.e. places.
    pub places: usize,
    /// The maximum number of arcs.
    pub arcs: usize,
    /// The maximum number of tokens and bindings visited to find the possible ones, counted with repetition.
    pub effort: usize,
}

impl UnfoldLimits {
    /// The limits for unfolding by default. Larger nets run about as fast coloured.
    pub const AUTO: UnfoldLimits = UnfoldLimits { transitions: 6_000, places: 6_000, arcs: 60_000, effort: 1_000_000 };
    /// The limits for unfolding on demand.
    pub const DEMANDED: UnfoldLimits =
        UnfoldLimits { transitions: 1_000_000, places: 1_000_000, arcs: 10_000_000, effort: 20_000_000 };
}

/// A P/T net and where its parts come from.
pub(crate) struct UnfoldedParts {
    pub net: pt::Net,
    /// For each place of the P/T net the coloured place and the token.
    pub places: Vec<(u32, u32)>,
    /// For each transition of the P/T net the action.
    pub actions: Vec<u32>,
    /// Tokens that never change: place, token, count.
    pub constants: Vec<(u32, u32, u32)>,
}

/// Unfolds, unless `control` stops it; the error says why not.
pub(crate) fn unfold(engine: &Engine, limits: UnfoldLimits, control: &Control) -> Result<UnfoldedParts, NotUnfolded> {
    refuse(engine)?;
    let (known, actions) = saturate(engine, limits, control)?;
    build(engine, &known, actions, limits, control)
}

/// Refuses what cannot be unfolded, whatever the tokens.
fn refuse(engine: &Engine) -> Result<(), String> {
    for (transition, plan) in engine.net.transitions.iter().zip(&engine.plans) {
        let name = &transition.name;
        if plan.priority.is_some() {
            return Err(format!("transition `{name}` has a priority"));
        }
        if !transition.resets.is_empty() {
            return Err(format!("transition `{name}` resets a place"));
        }
        if plan.late_guard.is_some() {
            // Code looks at no marking; only inhibitor arcs do.
            return Err(match engine.net.host {
                Some(_) => format!("transition `{name}` has an inhibitor arc"),
                None => format!("the guard of transition `{name}` looks at the marking"),
            });
        }
        if plan.inhibitors.len() > 1 {
            return Err(format!("transition `{name}` has several inhibitors, which block only together"));
        }
    }
    Ok(())
}

/// The tokens that can ever be in each place, and the bindings that can ever be enabled.
fn saturate(
    engine: &Engine,
    limits: UnfoldLimits,
    control: &Control,
) -> Result<(Vec<BTreeSet<u32>>, Vec<u32>), NotUnfolded> {
    let mut binder = Binder::new(engine);
    binder.candidates = true;
    let initial = engine.places.iter().zip(&engine.initial);
    let mut known: Vec<BTreeSet<u32>> =
        initial.map(|(place, &marking)| place.tokens(marking).map(|(token, _)| token).collect()).collect();
    let (mut actions, mut faults): (Vec<u32>, Vec<_>) = Default::default();
    let mut seen = BTreeSet::new();
    let mut effort = 0;
    loop {
        let markings: Vec<u32> = engine
            .places
            .iter()
            .zip(&known)
            .map(|(place, tokens)| {
                let all: Vec<(u32, u32)> = tokens.iter().map(|&token| (token, PLENTY)).collect();
                place.marking(&all)
            })
            .collect();
        actions.clear();
        // There can be very many combinations of tokens that each occur in few bindings.
        binder.limit(VISITS * limits.transitions, control);
        binder.enabled(engine, &markings, &mut actions, &mut faults);
        if let Some(stop) = binder.stopped() {
            return Err(stop.into());
        }
        if let Some((transition, fault)) = faults.first() {
            let message = engine.message(fault, Some(*transition));
            return Err(format!("it cannot be ruled out beforehand: {message}").into());
        }
        if actions.len() > limits.transitions {
            return Err(format!("it has more than {} bindings", limits.transitions).into());
        }
        if binder.is_spent() {
            return Err(String::from("there are too many combinations of tokens to try").into());
        }
        let mut grew = false;
        for &number in &actions {
            control.ask()?;
            if !seen.insert(number) {
                continue;
            }
            let action = engine.actions.get(number);
            if let Some(fault) = engine.actions.fault(number) {
                let message = engine.message(&fault, Some(action.transition()));
                return Err(format!("it cannot be ruled out beforehand: {message}").into());
            }
            for (place, effect) in action.changes() {
                for (token, gain) in engine.effects.get(effect) {
                    grew |= gain > 0 && known[place as usize].insert(token);
                }
            }
        }
        let tokens: usize = known.iter().map(BTreeSet::len).sum();
        effort += tokens + actions.len();
        if grew && effort > limits.effort {
            return Err(String::from("it takes too long to find out which tokens there can be").into());
        }
        if tokens > limits.places {
            return Err(format!("it has more than {} tokens", limits.places).into());
        }
        if !grew {
            return Ok((known, actions));
        }
    }
}

fn build(
    engine: &Engine,
    known: &[BTreeSet<u32>],
    actions: Vec<u32>,
    limits: UnfoldLimits,
    control: &Control,
) -> Result<UnfoldedParts, NotUnfolded> {
    let mut changing: BTreeSet<(u32, u32)> = BTreeSet::new();
    for &action in &actions {
        control.ask()?;
        for (place, effect) in engine.actions.get(action).changes() {
            changing.extend(engine.effects.get(effect).map(|(token, _)| (place, token)));
        }
    }
    // A P/T net needs a place: if nothing ever changes, all tokens become places.
    let static_net = changing.is_empty();
    let mut net = pt::Net { name: engine.net.name.clone(), ..pt::Net::default() };
    let (mut places, mut constants): (Vec<(u32, u32)>, Vec<_>) = Default::default();
    let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
    for (place, tokens) in (0..).zip(known) {
        let initial: HashMap<u32, u32> = engine.places[place as usize].tokens(engine.initial[place as usize]).collect();
        for &token in tokens {
            control.ask()?;
            let count = initial.get(&token).copied().unwrap_or(0);
            if !static_net && !changing.contains(&(place, token)) {
                constants.push((place, token, count));
                continue;
            }
            let mut name = engine.net.places[place as usize].name.clone();
            if !engine.net.places[place as usize].domain.is_empty() {
                let mut shown = String::new();
                engine.print_token(place as usize, token, &mut shown);
                name.push_str(&if shown.starts_with('(') { shown } else { format!("({shown})") });
            }
            numbers.insert((place, token), places.len() as u32);
            places.push((place, token));
            net.places.push(pt::Place { id: name.clone(), name, initial: count });
        }
    }
    let constant: HashMap<(u32, u32), u32> =
        constants.iter().map(|&(place, token, count)| ((place, token), count)).collect();
    let mut kept = Vec::new();
    let mut arcs = 0;
    'actions: for number in actions {
        control.ask()?;
        let action = engine.actions.get(number);
        let mut transition = pt::Transition::default();
        let mut gains: HashMap<(u32, u32), i32> = HashMap::new();
        for (place, effect) in action.changes() {
            gains.extend(engine.effects.get(effect).map(|(token, gain)| ((place, token), gain)));
        }
        for (place, token, count) in action.requirements() {
            let key = (place, token);
            let Some(&at) = numbers.get(&key) else {
                if constant.get(&key).is_none_or(|&there| there < count) {
                    continue 'actions;
                }
                continue;
            };
            // A token taken and put back is read; one only read or gained is no input.
            let gain = gains.remove(&key).unwrap_or(0);
            let (taken, added) = ((-i64::from(gain)).max(0) as u32, gain.max(0) as u32);
            if taken >= count {
                transition.inputs.push(pt::Arc { place: at, weight: taken });
            } else {
                transition.reads.push(pt::Arc { place: at, weight: count });
                if taken > 0 {
                    transition.inputs.push(pt::Arc { place: at, weight: taken });
                }
            }
            if added > 0 {
                transition.outputs.push(pt::Arc { place: at, weight: added });
            }
        }
        let mut rest: Vec<((u32, u32), i32)> = gains.into_iter().collect();
        rest.sort_unstable();
        for (key, gain) in rest {
            debug_assert!(gain > 0, "what is taken is required");
            if let Some(&place) = numbers.get(&key) {
                transition.outputs.push(pt::Arc { place, weight: gain.max(0) as u32 });
            }
        }
        for (place, token, count) in inhibitors(engine, known, number)? {
            match numbers.get(&(place, token)) {
                Some(&place) => transition.inhibitors.push(pt::Arc { place, weight: count }),
                None if constant.get(&(place, token)).is_some_and(|&there| there >= count) => continue 'actions,
                None => {}
            }
        }
        arcs +=
            transition.inputs.len() + transition.outputs.len() + transition.reads.len() + transition.inhibitors.len();
        if arcs > limits.arcs {
            return Err(format!("it has more than {} arcs", limits.arcs).into());
        }
        transition.name = engine.action_name(number);
        transition.id.clone_from(&transition.name);
        kept.push(number);
        net.transitions.push(transition);
    }
    if net.places.is_empty() {
        return Err(String::from("no token ever lies in it").into());
    }
    pt::unique_names(net.places.iter_mut().map(|place| (place.id.as_str(), &mut place.name)));
    pt::unique_names(net.transitions.iter_mut().map(|transition| (transition.id.as_str(), &mut transition.name)));
    reorder(engine, &mut net, &mut places, control)?;
    net.validate()?;
    Ok(UnfoldedParts { net, places, actions: kept, constants })
}

/// Makes places that belong together adjacent.
fn reorder(engine: &Engine, net: &mut pt::Net, places: &mut Vec<(u32, u32)>, control: &Control) -> Result<(), Stop> {
    let token = |&(place, token): &(u32, u32)| (place, engine.places[place as usize].components(token).collect());
    let order = order(net, &places.iter().map(token).collect::<Vec<_>>(), control)?;
    let mut position = vec![0; order.len()];
    for (at, &place) in (0..).zip(&order) {
        position[place as usize] = at;
    }
    *places = order.iter().map(|&place| places[place as usize]).collect();
    net.places = order.iter().map(|&place| net.places[place as usize].clone()).collect();
    for transition in &mut net.transitions {
        let pt::Transition { inputs, outputs, reads, inhibitors, .. } = transition;
        for arc in [inputs, outputs, reads, inhibitors].into_iter().flatten() {
            arc.place = position[arc.place as usize];
        }
    }
    Ok(())
}

/// The tokens that disable a binding: any one of them in this number.
fn inhibitors(engine: &Engine, known: &[BTreeSet<u32>], number: u32) -> Result<Vec<(u32, u32, u32)>, String> {
    let action = engine.actions.get(number);
    let plan = &engine.plans[action.transition() as usize];
    let [term] = plan.inhibitors.as_slice() else { return Ok(Vec::new()) };
    if !plan.existential && action.inhibited() {
        return Ok(action.inhibitors().collect());
    }
    let (place, weight) = (term.place.0, term.factor.max(1) as u32);
    let mut blocking = Vec::new();
    for &token in &known[place as usize] {
        let mut markings = engine.initial.clone();
        markings[place as usize] = engine.places[place as usize].marking(&[(token, weight)]);
        let look = Marking { engine, markings: &markings };
        match engine.inhibited(plan, number, &look) {
            Ok(true) => blocking.push((place, token, weight)),
            Ok(false) => {}
            Err(fault) => {
                return Err(format!(
                    "it cannot be ruled out beforehand: {}",
                    engine.message(&fault, Some(action.transition()))
                ));
            }
        }
    }
    Ok(blocking)
}
