//! A layer: the same system, in which one action never happens.
//!
//! It changes which steps there are. So it overrides whatever hands out steps, and hides what need no
//! longer hold: names of actions that are enabled, undoing, facts.

use deltamark_core::{
    Action, Batch, Block, Control, Exchange, Facts, Fired, Layer, Observable, Reversible, Scratch, Slot, Stop, System,
    Widen,
};

/// The same system without one action.
pub struct Without<'s> {
    pub inner: &'s dyn System,
    pub forbidden: Action,
}

impl Layer for Without<'_> {
    fn inner(&self) -> &dyn System {
        self.inner
    }

    fn successors(&self, scratch: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.inner.successors(scratch, source, out)?;
        out.retain(|action| action != self.forbidden);
        Ok(())
    }

    fn expand(&self, scratch: &mut Scratch, block: &Block, out: &mut Batch) -> Result<(), Widen> {
        self.inner.expand(scratch, block, out)?;
        out.retain(|action| action != self.forbidden);
        Ok(())
    }

    fn fire(
        &self,
        scratch: &mut Scratch,
        source: &[Slot],
        action: Action,
        target: &mut Vec<Slot>,
    ) -> Result<Fired, Widen> {
        if action == self.forbidden {
            return Ok(Fired::Disabled);
        }
        self.inner.fire(scratch, source, action, target)
    }

    fn fireable(&self, _: &str) -> Option<Observable> {
        None
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn reversible(&self) -> Option<&dyn Reversible> {
        None
    }

    fn facts(&self, _: &Control) -> Result<Option<Box<dyn Facts + '_>>, Stop> {
        Ok(None)
    }

    fn exchange(&self) -> Option<&dyn Exchange> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltamark_nets::{NetSystem, generate::generate};
    use deltamark_testkit::systems::{Counters, Odometer, Workers};
    use deltamark_testkit::{check_system, explore};

    #[test]
    fn the_layer_passes_the_suite() {
        let systems: [&dyn System; 4] = [
            &Workers::new(2, 2, 2),
            &Counters::new(3, 9),
            &Odometer::new(&[5, 4], 1),
            &NetSystem::new(generate("kanban", 1).expect("a family")),
        ];
        for (number, inner) in systems.into_iter().enumerate() {
            for forbidden in [Action(0), Action(1)] {
                // Shown if the suite fails, which does not know which system it is given.
                println!("system {number} without {forbidden:?}");
                check_system(&Without { inner, forbidden });
            }
        }
    }

    #[test]
    fn layers_stack() {
        let net = NetSystem::new(generate("philosophers", 3).expect("a family"));
        let once = Without { inner: &net, forbidden: Action(0) };
        let twice = Without { inner: &once, forbidden: Action(1) };
        check_system(&twice);
        let edges = |system: &dyn System| explore(system).edges.len();
        assert!(edges(&net) > edges(&once) && edges(&once) > edges(&twice));
    }
}
