//! The `plca` command.

fn main() -> std::process::ExitCode {
    plca_cli::main()
}
