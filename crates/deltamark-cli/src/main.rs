//! The `deltamark` command.

fn main() {}
