//! The parts of a net: places and transitions that depend on each other.
//!
//! In: a draft. Out: the strongly connected components of the graph with an edge from each place to the transitions that touch it, and from each transition to the
//! places that it changes. What stays true: a component comes after those that its edges lead to. So transitions are in the component of all places that they change, and what sees
//! a part comes before it.
//!
//! R. Tarjan, *Depth-first search and linear graph algorithms*, SIAM J. Comput. 1972.

use super::draft::Draft;
use deltamark_core::Stop;

/// A place or a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Place(u32),
    Transition(u32),
}

/// A node that was not reached yet.
const UNSEEN: u32 = u32::MAX;

/// The components.
pub(super) fn parts(draft: &mut Draft<'_>) -> Result<Vec<Vec<Node>>, Stop> {
    let places = draft.places().len() as u32;
    let number = |node: Node| match node {
        Node::Place(place) => place as usize,
        Node::Transition(transition) => (places + transition) as usize,
    };
    let count = places as usize + draft.transitions.len();
    let mut order = vec![UNSEEN; count];
    let mut low = vec![UNSEEN; count];
    let mut found = Vec::new();
    // Nodes of components that are not complete, and the path with what is left of each node's edges.
    let (mut open, mut path): (Vec<Node>, Vec<(Node, Vec<Node>)>) = (Vec::new(), Vec::new());
    let mut seen = 0;
    let present = draft.places().filter(|&place| draft.has_place(place)).map(Node::Place);
    let roots: Vec<Node> = present.chain(draft.all_transitions().into_iter().map(Node::Transition)).collect();
    for root in roots {
        if order[number(root)] != UNSEEN {
            continue;
        }
        path.push((root, edges(draft, root)?));
        (order[number(root)], low[number(root)]) = (seen, seen);
        seen += 1;
        open.push(root);
        while let Some((node, left)) = path.last_mut() {
            let at = number(*node);
            match left.pop() {
                Some(next) if order[number(next)] == UNSEEN => {
                    (order[number(next)], low[number(next)]) = (seen, seen);
                    seen += 1;
                    open.push(next);
                    let further = edges(draft, next)?;
                    path.push((next, further));
                }
                // A node of a complete component has no low number any more.
                Some(next) if low[number(next)] != UNSEEN => low[at] = low[at].min(order[number(next)]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((before, _)) = path.last() {
                        let before = number(*before);
                        low[before] = low[before].min(low[at]);
                    }
                    if low[at] == order[at] {
                        let start = open.iter().rposition(|&member| number(member) == at).expect("it is open");
                        let part = open.split_off(start);
                        part.iter().for_each(|&member| low[number(member)] = UNSEEN);
                        found.push(part);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Where the edges of a node lead.
fn edges(draft: &mut Draft<'_>, node: Node) -> Result<Vec<Node>, Stop> {
    match node {
        Node::Place(place) => Ok(draft.users(place)?.into_iter().map(Node::Transition).collect()),
        Node::Transition(transition) => {
            draft.spend(draft.touches(transition).len())?;
            let changed = draft.touches(transition).iter().filter(|touch| touch.gain != 0);
            Ok(changed.map(|touch| Node::Place(touch.place)).collect())
        }
    }
}
