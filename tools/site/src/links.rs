//! Links of the rendered pages: each leads to something, and nothing is loaded from a network.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use lol_html::{RewriteStrSettings, element, rewrite_str};

/// What was found.
pub(crate) struct Report {
    pub(crate) pages: usize,
    pub(crate) within: usize,
    /// Addresses that are not followed.
    pub(crate) elsewhere: BTreeSet<String>,
}

/// A place in the site, and where the link to it is.
struct Link {
    page: PathBuf,
    target: PathBuf,
    fragment: String,
}

struct Follower<'a> {
    root: &'a Path,
    out: &'a Path,
    /// Identifiers of every page, by its path in the site.
    places: BTreeMap<PathBuf, BTreeSet<String>>,
    links: Vec<Link>,
    elsewhere: BTreeSet<String>,
    wrong: Vec<String>,
}

/// A path without `.` and `..`, or nothing if it leads out.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// How a page names another file of the site.
fn relative(page: &Path, target: &Path) -> String {
    let up = page.components().count() - 1;
    let parts = target
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let parts: Vec<_> = std::iter::repeat_n("..".into(), up).chain(parts).collect();
    parts.join("/")
}

fn is_elsewhere(address: &str) -> bool {
    ["https:", "http:", "mailto:", "//"]
        .iter()
        .any(|start| address.starts_with(start))
}

impl Follower<'_> {
    /// Where a path of the repository is in the site.
    fn in_site(&self, path: &Path) -> Option<PathBuf> {
        let here = |candidate: &PathBuf| self.out.join(candidate).is_file();
        if path.file_stem().is_some_and(|stem| stem == "README") {
            return Some(path.with_file_name("index.html")).filter(here);
        }
        // The folder or the source of a library stands for its pages of rustdoc.
        let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
        if let ["crates", name] | ["crates", name, "src", "lib.rs"] = parts[..] {
            let api = Path::new("api").join(name.replace('-', "_"));
            let api = api.join("index.html");
            if here(&api) {
                return Some(api);
            }
        }
        let page = match path.extension().and_then(|extension| extension.to_str()) {
            // The page of a script, in place of the script.
            Some("md" | "py") => path.with_extension("html"),
            _ => path.into(),
        };
        Some(page)
            .filter(here)
            .or(Some(path.join("index.html")).filter(here))
    }

    /// What a page is to say instead of an address.
    fn address(&mut self, page: &Path, address: &str, shown: bool) -> Option<String> {
        if is_elsewhere(address) {
            if shown {
                self.wrong
                    .push(format!("{}: loads {address}", page.display()));
            }
            self.elsewhere.insert(address.into());
            return None;
        }
        if address.starts_with("javascript:") || address.starts_with("data:") {
            return None;
        }
        let (path, fragment) = address.split_once('#').unwrap_or((address, ""));
        let path = path
            .split('?')
            .next()
            .unwrap_or_default()
            .replace("%20", " ");
        let target = if path.is_empty() {
            Some(page.into())
        } else {
            plain(&page.parent().unwrap_or(Path::new("")).join(path))
        };
        let Some(target) = target else {
            self.wrong
                .push(format!("{}: {address} leads out", page.display()));
            return None;
        };
        // Markdown's pages have been given their new ending already.
        let source = target.with_extension("md");
        let source = if target.extension().is_some_and(|e| e == "html")
            && self.root.join(&source).is_file()
        {
            source
        } else {
            target.clone()
        };
        if let Some(found) = self.in_site(&source) {
            let new = (found != target).then(|| {
                let hash = if fragment.is_empty() { "" } else { "#" };
                format!("{}{hash}{fragment}", relative(page, &found))
            });
            self.links.push(Link {
                page: page.into(),
                target: found,
                fragment: fragment.into(),
            });
            return new;
        }
        let file = self.root.join(&source);
        if shown && file.is_file() {
            let to = self.out.join(&source);
            let made = to.parent().map_or(Ok(()), std::fs::create_dir_all);
            if let Err(error) = made.and_then(|()| std::fs::copy(&file, &to).map(drop)) {
                self.wrong.push(format!("{}: {error}", to.display()));
            }
            self.links.push(Link {
                page: page.into(),
                target: source,
                fragment: String::new(),
            });
            return None;
        }
        if file.exists() && !source.starts_with("target") {
            let kind = if file.is_dir() { "tree" } else { "blob" };
            let host = env!("CARGO_PKG_REPOSITORY");
            let hash = if fragment.is_empty() { "" } else { "#" };
            let new = format!("{host}/{kind}/main/{}{hash}{fragment}", source.display());
            self.elsewhere.insert(new.clone());
            return Some(new);
        }
        self.wrong
            .push(format!("{}: {address} is nowhere", page.display()));
        None
    }

    fn page(&mut self, page: &Path) -> Result<()> {
        let file = self.out.join(page);
        let html = std::fs::read_to_string(&file)?;
        let mut places = BTreeSet::new();
        let this = RefCell::new(&mut *self);
        let rewritten = rewrite_str(
            &html,
            RewriteStrSettings::new()
                .append_element_content_handler(element!("[id], a[name]", |element| {
                    let name = element
                        .get_attribute("id")
                        .or(element.get_attribute("name"));
                    places.extend(name);
                    Ok(())
                }))
                .append_element_content_handler(element!("[href], [src]", |element| {
                    let tag = element.tag_name();
                    for name in ["href", "src"] {
                        let Some(address) = element.get_attribute(name) else {
                            continue;
                        };
                        let shown = tag != "a" && tag != "area";
                        if let Some(new) = this.borrow_mut().address(page, &address, shown) {
                            element.set_attribute(name, &new)?;
                        }
                    }
                    Ok(())
                })),
        )?;
        if rewritten != html {
            std::fs::write(&file, rewritten)?;
        }
        self.places.insert(page.into(), places);
        Ok(())
    }
}

/// Pages of a folder, without those of rustdoc, which checks its own.
fn pages(out: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(out.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if path != Path::new("api") {
                pages(out, &path, found)?;
            }
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Links of all pages, led to where their target is.
///
/// # Errors
///
/// A link to nothing, or something that would be loaded from a network: all of them, each with its page.
pub(crate) fn follow(root: &Path, out: &Path) -> Result<Report> {
    let mut follower = Follower {
        root,
        out,
        places: BTreeMap::new(),
        links: Vec::new(),
        elsewhere: BTreeSet::new(),
        wrong: Vec::new(),
    };
    let mut found = Vec::new();
    pages(out, Path::new(""), &mut found)?;
    found.sort();
    for page in &found {
        follower.page(page)?;
    }
    let Follower {
        places,
        links,
        elsewhere,
        mut wrong,
        ..
    } = follower;
    for link in &links {
        let Some(places) = places.get(&link.target) else {
            continue;
        };
        if !link.fragment.is_empty() && !places.contains(&link.fragment) {
            let (page, target) = (link.page.display(), link.target.display());
            wrong.push(format!("{page}: {target} has no #{}", link.fragment));
        }
    }
    if !wrong.is_empty() {
        bail!("{} broken links:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(Report {
        pages: found.len(),
        within: links.len(),
        elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the links of `index.html` in a site with some pages, made from a repository with some files.
    fn follow_page(html: &str) -> Result<(Report, String)> {
        let folder = tempfile::tempdir()?;
        let (root, out) = (folder.path().join("repository"), folder.path().join("site"));
        let files = [
            (&root, "docs/A.md"),
            (&root, "docs/a.png"),
            (&root, "src/main.rs"),
            (&root, "examples/text.py"),
            (&root, "README.md"),
            (&out, "docs/A.html"),
            (&out, "examples/text.html"),
            (&out, "toc.html"),
            (&out, "toc.js"),
        ];
        for (folder, name) in files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap())?;
            std::fs::write(file, "<p id=\"here\"></p>")?;
        }
        std::fs::write(out.join("index.html"), html)?;
        let report = follow(&root, &out)?;
        Ok((report, std::fs::read_to_string(out.join("index.html"))?))
    }

    #[test]
    fn links_lead_to_pages_or_to_the_host() {
        let host = env!("CARGO_PKG_REPOSITORY");
        for (given, expected) in [
            (
                "<a href=\"docs/A.html#here\">",
                "docs/A.html#here".to_string(),
            ),
            ("<a href=\"examples/text.py\">", "examples/text.html".into()),
            ("<a href=\"README.html\">", "index.html".into()),
            ("<script src=\"toc.js\">", "toc.js".into()),
            ("<img src=\"docs/a.png\">", "docs/a.png".into()),
            (
                "<a href=\"src/main.rs\">",
                format!("{host}/blob/main/src/main.rs"),
            ),
            ("<a href=\"src\">", format!("{host}/tree/main/src")),
            ("<a href=\"https://a.b/c\">", "https://a.b/c".into()),
        ] {
            let (report, html) = follow_page(given).unwrap();
            assert!(
                html.contains(&format!("=\"{expected}\"")),
                "{given}: {html}"
            );
            assert_eq!(
                report.elsewhere.len(),
                usize::from(expected.starts_with("https"))
            );
        }
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        for (given, part) in [
            ("<a href=\"docs/B.html\">", "docs/B.html is nowhere"),
            (
                "<a href=\"docs/A.html#there\">",
                "docs/A.html has no #there",
            ),
            ("<a href=\"../other\">", "../other leads out"),
            ("<img src=\"https://a.b/c.png\">", "loads https://a.b/c.png"),
            ("<script src=\"//a.b/c.js\">", "loads //a.b/c.js"),
        ] {
            let error = follow_page(given).err().expect(given).to_string();
            assert!(
                error.contains("index.html: ") && error.contains(part),
                "{error}"
            );
        }
    }
}
