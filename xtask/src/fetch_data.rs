#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Args) -> crate::Result<bool> {
    Ok(true)
}
