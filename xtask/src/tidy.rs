pub(crate) fn run() -> crate::Result<bool> {
    Ok(true)
}
