//! The `parlor` program: reads the command line and hands over.

use std::process::ExitCode;

fn main() -> ExitCode {
    parlor::cli::main()
}
