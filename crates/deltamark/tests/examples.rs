//! The example programs, each with its exact counts, which breadth-first searches written apart gave too.

#![allow(dead_code, reason = "each example has a `main` of its own")]

#[path = "../examples/bounded_queue.rs"]
mod bounded_queue;
#[path = "../examples/lease.rs"]
mod lease;
#[path = "../examples/puzzle.rs"]
mod puzzle;
#[path = "../examples/replicated_log.rs"]
mod replicated_log;
#[path = "../examples/two_phase_commit.rs"]
mod two_phase_commit;

#[test]
fn two_phase_commit_has_the_states_of_its_specification() {
    // 288 states: as many as other checkers find for three participants.
    assert_eq!(two_phase_commit::explore(), Ok((288, 1145)));
}

#[test]
fn alike_participants_leave_one_state_of_seven_hundred() {
    assert_eq!(two_phase_commit::explore_quotients(), Ok([(80, 317), (2_232, 26_315)]));
}

#[test]
fn fencing_tokens_save_the_write() {
    assert_eq!(lease::explore(), Ok((112, 336, 5)));
}

#[test]
fn what_is_committed_stays() {
    assert_eq!(replicated_log::explore(), Ok((994, 2334)));
}

#[test]
fn waking_one_thread_deadlocks() {
    assert_eq!(bounded_queue::explore(), Ok((6, 13, 8)));
}

#[test]
fn the_hardest_position_takes_31_moves() {
    // Each of the 9 squares is empty in 20,160 positions, with 2, 3 or 4 moves.
    assert_eq!(puzzle::explore(), Ok((181_440, 20_160 * (4 * 2 + 4 * 3 + 4), 31)));
}
