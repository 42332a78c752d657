//! What a test calls: it fails with all that is needed to look into the failure.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::report::Report;
use crate::shrink::shrink;

impl Report {
    /// Does nothing when every promise was kept.
    ///
    /// # Panics
    ///
    /// When one was broken. The text says what was broken, has the shortest scenario that was found to break it still, and
    /// names two files in the directory `LOCKNODE_SIM_DIR`, or the system's for temporary files: that scenario, with the
    /// line that replays it, and its timeline.
    #[expect(clippy::panic, reason = "what a test calls to fail")]
    pub fn assert_safe(&self) {
        if !self.is_safe() {
            panic!("{}", self.failure());
        }
    }

    fn failure(&self) -> String {
        let shrunk = shrink(self.scenario(), SHRINK_RUNS);
        let short = Self::with_messages(&shrunk.scenario);
        let dir =
            std::env::var_os("LOCKNODE_SIM_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let seed = self.scenario().setup.seed;
        let in_dir = |ending: &str| dir.join(format!("locknode-sim-{seed}.{ending}"));
        let (scenario_file, timeline_file) = (in_dir("txt"), in_dir("html"));
        let replay = format!(
            "locknode sim --replay {} --expect {:016x}",
            scenario_file.display(),
            short.hash()
        );
        let mut text = format!(
            "{self}\nthe shortest scenario that still breaks it:\n{}",
            shrunk.scenario
        );
        let files = [
            (scenario_file, shrunk.scenario.to_string()),
            (timeline_file, short.timeline(Some(&replay))),
        ];
        for (path, content) in files {
            // The scenario is in the text already: a file that cannot be written loses nothing but the picture.
            let _ = match fs::write(&path, content) {
                Ok(()) => writeln!(text, "written: {}", path.display()),
                Err(error) => writeln!(text, "cannot write {}: {error}", path.display()),
            };
        }
        text.push_str("replay: ");
        text.push_str(&replay);
        text
    }
}

/// Runs that a failing test spends on a shorter scenario: some seconds.
const SHRINK_RUNS: u32 = 600;

#[cfg(test)]
mod tests {
    use crate::bug::Bug;
    use crate::scenario::Scenario;
    use crate::swarm::Swarm;

    use super::*;

    #[test]
    fn a_failure_says_what_broke_and_leaves_what_replays_it() {
        let report = Swarm::for_bug(Bug::HalfIsQuorum).run(0);
        let text = report.failure();
        assert!(text.contains("both held"), "{text}");
        let line = text.lines().last().unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let (path, hash) = (words[4], words[6]);
        let scenario = Scenario::parse(&fs::read_to_string(path).unwrap()).unwrap();
        let again = Report::of(&scenario);
        assert!(!again.is_safe());
        assert_eq!(format!("{:016x}", again.hash()), hash);
        let picture = fs::read_to_string(path.replace(".txt", ".html")).unwrap();
        assert!(picture.contains("locknode sim --replay"));
    }
}
