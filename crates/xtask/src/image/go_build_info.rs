//! What Go writes into every program: its own version, and the modules that the program was built from.

use anyhow::Context;

/// Begins the data, at a multiple of 16.
const MAGIC: &[u8] = b"\xff Go buildinf:";
const ALIGNMENT: usize = 16;
/// Bit 1 of this byte: the two texts follow behind the header.
const FLAGS: usize = 15;
const HEADER: usize = 32;
/// Around the text of the modules are marks of this size.
const MARK: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoBuildInfo {
    /// The version of Go, without `go`.
    pub(crate) go: String,
    pub(crate) modules: Vec<GoModule>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GoModule {
    pub(crate) path: String,
    pub(crate) version: String,
}

impl GoBuildInfo {
    pub(crate) fn of(program: &[u8]) -> anyhow::Result<GoBuildInfo> {
        let starts = (0..program.len()).step_by(ALIGNMENT).map(|start| &program[start..]);
        let mut marked = starts.filter(|data| data.starts_with(MAGIC));
        // A program that reads build info has the mark elsewhere, too.
        marked.find_map(read).context("this program was not built by Go 1.18 or newer")
    }
}

fn read(data: &[u8]) -> Option<GoBuildInfo> {
    if data.get(FLAGS)? & 2 == 0 {
        return None;
    }
    let (go, rest) = text(data.get(HEADER..)?)?;
    let (modules, _) = text(rest)?;
    let modules = modules.get(MARK..modules.len().checked_sub(MARK)?)?;
    let go = std::str::from_utf8(go).ok()?.strip_prefix("go")?.to_owned();
    Some(GoBuildInfo { go, modules: parse(&String::from_utf8_lossy(modules)) })
}

/// A text behind its length, and what follows.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0_usize;
    for (at, byte) in data.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return data[at + 1..].split_at_checked(length);
        }
    }
    None
}

/// The modules, the one of the program included. A line `=>` names what the module before it is replaced by.
fn parse(text: &str) -> Vec<GoModule> {
    let mut modules = Vec::<GoModule>::new();
    for line in text.lines() {
        let mut words = line.split('\t');
        let (kind, path, version) = (words.next(), words.next(), words.next());
        let (Some(path), Some(version)) = (path, version) else { continue };
        let module = GoModule { path: path.to_owned(), version: version.to_owned() };
        match kind {
            // A module without a version was only made for the build.
            Some("mod") if version.starts_with('(') => {}
            Some("mod" | "dep") => modules.push(module),
            Some("=>") => {
                modules.pop();
                modules.push(module);
            }
            _ => {}
        }
    }
    modules.sort();
    modules
}

#[cfg(test)]
mod tests {
    use devcluster::tools::{self, Program};

    use super::*;

    #[test]
    fn replaced_modules_are_told_as_what_they_are_replaced_by() {
        let text = "path\tx/cmd\nmod\tx\tv0.1.0\th1:z\ndep\ta\tv1.0.0\th1:x\ndep\tb\tv1.0.0\n=>\tc\tv2.0.0\th1:y\nbuild\tGOOS=linux\n";
        let module = |path: &str, version: &str| GoModule { path: path.to_owned(), version: version.to_owned() };
        assert_eq!(parse(text), [module("a", "v1.0.0"), module("c", "v2.0.0"), module("x", "v0.1.0")]);
        assert!(parse("mod\tours\t(devel)\t\n").is_empty());
    }

    #[test]
    fn a_program_of_another_language_is_refused() {
        assert!(GoBuildInfo::of(b"\x7fELF and so on").is_err());
        let mut cut = vec![0; 48];
        cut[..MAGIC.len()].copy_from_slice(MAGIC);
        cut[FLAGS] = 2;
        cut[HEADER] = 0x7f;
        assert!(GoBuildInfo::of(&cut).is_err());
    }

    /// What runs a third-party program, which `make check` leaves out.
    mod third_party {
        use super::*;

        #[test]
        fn the_descheduler_tells_what_it_was_built_from() {
            let program = std::fs::read(tools::ensure(Program::Descheduler).unwrap()).unwrap();
            let info = GoBuildInfo::of(&program).unwrap();
            assert!(info.go.starts_with("1."), "{}", info.go);
            let has = |path: &str, version: &str| {
                info.modules.iter().any(|module| module.path == path && module.version.starts_with(version))
            };
            assert!(has("sigs.k8s.io/descheduler", Program::Descheduler.version()), "{info:?}");
            assert!(has("k8s.io/client-go", "v0."), "{info:?}");
        }
    }
}
