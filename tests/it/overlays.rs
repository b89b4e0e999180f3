//! The overlays as `kubectl kustomize` of several versions renders them.

use std::fs;
use std::process::Command;

use crate::chart::{PRESETS, documents};
use crate::harness::binary::{repository, stderr, stdout};
use crate::programs::assets;
use crate::programs::assets::versions::KUBERNETES;

/// The last minor version whose kustomize crashes on a patch of several objects that deletes.
const LAST_THAT_CRASHES: &str = "1.33.";

#[test]
fn every_overlay_renders_the_same_with_the_kubectl_of_the_oldest_and_of_the_newest_version() {
    let [oldest, .., newest] = KUBERNETES;
    let crashes = KUBERNETES.into_iter().find(|release| release.starts_with(LAST_THAT_CRASHES)).unwrap();
    let programs = [oldest, crashes, newest]
        .map(|kubernetes| (kubernetes, assets::kustomize(kubernetes).unwrap_or_else(|error| panic!("{error}"))));
    let mut overlays: Vec<_> =
        fs::read_dir(repository("manifests/overlays")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(overlays.len() >= PRESETS.len() + 4, "{overlays:?}");
    overlays.push(repository("manifests/base"));
    for overlay in overlays {
        let rendered = programs.each_ref().map(|(kubernetes, program)| {
            let output = Command::new(program).arg(&overlay).output().unwrap();
            assert!(output.status.success(), "kubectl {kubernetes}: {}\n{}", overlay.display(), stderr(&output));
            assert_eq!(stderr(&output), "", "kubectl {kubernetes}: {}", overlay.display());
            stdout(&output).to_owned()
        });
        assert!(documents(&rendered[0]).len() > 20, "{}", overlay.display());
        for ((kubernetes, _), text) in programs.iter().zip(&rendered).skip(1) {
            assert!(*text == rendered[0], "kubectl {oldest} and {kubernetes} differ in {}", overlay.display());
        }
    }
}
