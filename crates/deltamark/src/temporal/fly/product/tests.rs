//! Products keep the contract of systems, and have the states that they should have.

use super::super::Fly;
use super::*;
use deltamark_logic::temporal::{Logic, Temporal};
use deltamark_nets::{NetSystem, generate::generate, tina};
use deltamark_testkit::{check_system, explore};

fn product<'s>(system: &'s dyn System, formula: &str) -> Fly<'s> {
    let observe = system.observe().expect("it has names");
    let mut questions = Questions::default();
    questions.add("test".into(), Temporal::new(Logic::Ltl, formula, observe).expect(formula));
    let fly = Fly::new(system, &Arc::new(questions), 0, None, &Control::new()).expect("no fairness");
    fly.expect("no limit")
}

/// Counts that outgrow their layout.
fn growing() -> NetSystem {
    NetSystem::new(tina::parse("pl a (1)\npl b (3)\ntr up a -> a b*2000\ntr stop a b*20000 -> c\n").expect("a net"))
}

#[test]
fn products_keep_the_contract_of_systems() {
    let dve = deltamark_dve::parse(include_bytes!("../../../../../../models/peterson.dve")).expect("a model");
    let systems: [(&dyn System, &[&str]); 4] = [
        (
            &NetSystem::new(generate("kanban", 1).expect("a family")),
            &["G F fireable(t1)", "F deadlock", "initial U (G not deadlock)"],
        ),
        (&NetSystem::new(generate("philosophers", 3).expect("a family")), &["F G deadlock", "G not deadlock"]),
        (&deltamark_dve::DveSystem::new(dve), &["G (P_0.waiting -> F P_0.CS)", "G (P_0.CS -> X X P_0.idle)"]),
        (&growing(), &["F (c = 1)", "G (b / (a + c) >= 3)"]),
    ];
    for (system, formulas) in systems {
        let first = system.observe().expect("names").action_names()[0].clone();
        for formula in formulas {
            let formula = formula.replace("fireable(t1)", &format!("fireable({})", deltamark_logic::quote(&first)));
            check_system(&product(system, &formula).product);
        }
    }
}

#[test]
fn a_product_visits_what_may_contribute_to_a_violation() {
    let net = NetSystem::new(tina::parse("pl a (1)\ntr t a -> b\ntr u b -> c\ntr v c -> b\n").expect("a net"));
    // The formula, whether cycles decide, and the states of the product.
    let rows = [
        ("true", false, 1),
        // The initial state violates it; both of its successors are found all the same.
        ("G b = 1", false, 4),
        ("a = 1", false, 1),
        // Only paths along which `c` is empty, up to the first state in which it is not.
        ("F c = 1", true, 3),
        ("G F a = 1", true, 5),
        // A division may fail, so there is a copy of the model beside it.
        ("G 2 / (a + b + c) = 2", false, 6),
    ];
    for (formula, cycles, states) in rows {
        let fly = product(&net, formula);
        assert_eq!((fly.needs_cycles, explore(&fly.product).states.len()), (cycles, states), "{formula}");
    }
}
