//! The committed definitions are what the types say.

use std::fs;
use std::path::Path;

#[test]
fn the_committed_definitions_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, expected) in virt_advisor_api::crd::files() {
        let committed = fs::read_to_string(root.join(path)).unwrap_or_default();
        // Not assert_eq: two whole definitions in a failure message hide what to do about it.
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}
