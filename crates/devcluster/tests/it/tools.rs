//! The programs are the pinned ones.

use devcluster::tools::{Program, ensure};

#[test]
fn kubectl_says_the_pinned_version() {
    let kubectl = ensure(Program::Kubectl).unwrap();
    let output = std::process::Command::new(kubectl).args(["version", "--client"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("Client Version: {}", Program::Kubectl.version())), "{text}");
}
