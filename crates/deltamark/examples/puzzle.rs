//! The 8-puzzle: eight tiles on a board of nine squares, and the shortest solution of its hardest position.
//!
//! Half of all 9! arrangements can be reached from each other, 181,440; the farthest from the goal takes 31 moves
//! (Reinefeld, *Complete solution of the eight-puzzle*, IJCAI 1993).
use deltamark::{Model, Pack, Step};

#[derive(Clone, Debug, PartialEq, Pack)]
struct Board {
    /// The tile on each square, row by row; 0 is the empty square.
    #[pack(bits = 4)]
    squares: [u8; 9],
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Up,
    Down,
    Left,
    Right,
}

struct Puzzle;

const HARDEST: Board = Board { squares: [8, 6, 7, 2, 5, 4, 3, 0, 1] };
const SOLVED: Board = Board { squares: [1, 2, 3, 4, 5, 6, 7, 8, 0] };

impl Model for Puzzle {
    type State = Board;
    type Action = Move;

    fn initial(&self) -> Vec<Board> {
        vec![HARDEST]
    }

    fn actions(&self, _: &Board, actions: &mut Vec<Move>) {
        actions.extend([Move::Up, Move::Down, Move::Left, Move::Right]);
    }

    fn next(&self, board: &mut Board, direction: Move) -> Step {
        let empty = board.squares.iter().position(|&tile| tile == 0).expect("one square is empty");
        let (row, column) = (empty / 3, empty % 3);
        let from = match direction {
            Move::Up if row < 2 => empty + 3,
            Move::Down if row > 0 => empty - 3,
            Move::Left if column < 2 => empty + 1,
            Move::Right if column > 0 => empty - 1,
            _ => return Step::Disabled,
        };
        board.squares.swap(empty, from);
        Step::Taken
    }
}

/// Solves the puzzle; returns states and edges, and the length of the solution.
pub fn explore() -> Result<(u64, u64, usize), deltamark::ModelError> {
    let report = deltamark::check(Puzzle).reachable("solved", |board| *board == SOLVED).explore_all().run()?;
    let solution = report.trace("solved").expect("this position can be solved");
    println!("{solution}{} positions, {} moves", report.states(), solution.steps.len());
    Ok((report.states(), report.edges(), solution.steps.len()))
}

fn main() -> Result<(), deltamark::ModelError> {
    explore().map(drop)
}
