//! What the digest of a plan covers, and what not.

use super::*;

/// The parts of a plan that a test may vary.
#[derive(Clone)]
struct Reviewed {
    about: &'static ProfileInfo,
    intent: Intent,
    preview: Preview,
    pools: Vec<Value>,
    notes: Vec<String>,
}

impl Reviewed {
    fn new() -> Self {
        let fields = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": "a", "labels": {"role": "worker"}},
            "spec": {"kernelArguments": ["a", "b"]},
        });
        let mut live = fields.clone();
        live["spec"]["kernelArguments"] = json!(["a"]);
        let pool = json!({
            "metadata": {"name": "worker"},
            "spec": {"paused": false, "machineConfigSelector": {"matchLabels": {"role": "worker"}}},
            "status": {"machineCount": 3},
        });
        let intent = Intent {
            name: "set-arguments".into(),
            target: ObjectRef::cluster(&kind::MACHINE_CONFIG, "a"),
            version: "v1",
            change: Change::Apply { fields: fields.clone(), remove: Vec::new() },
            managed: vec!["spec.kernelArguments".into()],
            message: "set".into(),
            why: "why",
            inputs: vec![PlanInput { source: "Thing/a".into(), path: "spec.a".into(), value: Some("1".into()) }],
            weight: Weight::Nodes,
            restores: None,
        };
        let preview =
            Preview { live: Some(ours(live)), outcome: PreviewOutcome::Object(ours(fields)), takes_over: Vec::new() };
        Reviewed { about: &ABOUT, intent, preview, pools: vec![pool], notes: Vec::new() }
    }

    fn plan(&self) -> Plan {
        let list = Answer::List { version: "v1", items: self.pools.clone() };
        let facts = Facts::of([(Query::List(&kind::MACHINE_CONFIG_POOL), list)]);
        let draft = Draft { intents: vec![self.intent.clone()], notes: self.notes.clone(), ..Draft::default() };
        Plan::assemble(self.about, draft, vec![self.preview.clone()], facts)
    }

    fn digest(&self) -> String {
        self.plan().digest
    }

    fn live(&mut self) -> &mut Value {
        self.preview.live.as_mut().unwrap()
    }

    fn result(&mut self) -> &mut Value {
        let PreviewOutcome::Object(object) = &mut self.preview.outcome else { panic!("refused") };
        object
    }

    fn fields(&mut self) -> &mut Value {
        let Change::Apply { fields, .. } = &mut self.intent.change else { panic!("a removal") };
        fields
    }
}

type Edit = fn(&mut Reviewed);

static OTHER: ProfileInfo = ProfileInfo {
    name: "other-profile",
    description: "",
    category: "",
    impact_summary: "",
    impact: Severity::Low,
    advertised: false,
    options_member: None,
    former_manager: Some(FIELD_MANAGER),
    documentation: "",
};

static TELLING: [(&str, Edit); 18] = [
    ("the profile", |it| it.about = &OTHER),
    ("the name of an item", |it| it.intent.name = "other".into()),
    ("the target", |it| it.intent.target.name = "b".into()),
    ("the target's version", |it| it.intent.version = "v2"),
    ("a desired value", |it| it.fields()["spec"]["kernelArguments"] = json!(["a", "c"])),
    ("a desired value more", |it| it.fields()["spec"]["fips"] = true.into()),
    ("a removed field", |it| {
        let Change::Apply { remove, .. } = &mut it.intent.change else { panic!() };
        remove.push(Path::dotted("spec.fips"));
    }),
    ("removal of the whole", |it| {
        it.intent.change = Change::Delete;
        it.preview.outcome = PreviewOutcome::Gone;
    }),
    ("the live value of a leaf", |it| it.live()["spec"]["kernelArguments"] = json!(["c"])),
    ("the live value of our label", |it| it.live()["metadata"]["labels"]["role"] = "infra".into()),
    ("a leaf that is not there", |it| it.live()["spec"] = json!({})),
    ("an object that is not there", |it| it.preview.live = None),
    ("the value of an input", |it| it.intent.inputs[0].value = Some("2".into())),
    ("an input that is not set", |it| it.intent.inputs[0].value = None),
    ("a pool that is paused", |it| it.pools[0]["spec"]["paused"] = true.into()),
    ("a pool of another name", |it| it.pools[0]["metadata"]["name"] = "infra".into()),
    ("whose fields change hands", |it| {
        it.preview.takes_over =
            vec![TakeOver { manager: "kubectl".into(), fields: vec!["spec.kernelArguments".into()] }];
    }),
    ("a refusal", |it| it.preview.outcome = PreviewOutcome::Refused(forbidden())),
];

#[test]
fn the_digest_changes_with_whatever_a_reviewer_has_read() {
    let mut seen = vec![("unedited", Reviewed::new().digest())];
    for (case, edit) in &TELLING {
        let mut reviewed = Reviewed::new();
        edit(&mut reviewed);
        let digest = reviewed.digest();
        let same = seen.iter().find(|(_, known)| *known == digest);
        assert_eq!(same, None, "{case}");
        seen.push((case, digest));
    }
}

#[test]
fn the_digest_changes_with_severity_and_reboot_alone() {
    // The same change with another impact.
    let digest = |weight: Weight| {
        let mut reviewed = Reviewed::new();
        reviewed.intent.weight = weight;
        reviewed.pools.clear();
        let plan = reviewed.plan();
        (plan.digest, plan.severity, plan.items[0].item.impact_detail.clone())
    };
    let (trifle, platform, nodes) = (digest(Weight::Negligible), digest(Weight::Platform), digest(Weight::Nodes));
    assert_eq!((trifle.1, platform.1, nodes.1), (Severity::Low, Severity::Medium, Severity::Low));
    assert_ne!(trifle.0, platform.0, "severity");
    assert_eq!(nodes.2, Some(ImpactDetail { reboot: false, pools: vec![] }));

    let mut known = Reviewed::new();
    known.pools.clear();
    let mut unknown = known.clone();
    unknown.pools.clear();
    let unknown = {
        let draft = Draft { intents: vec![unknown.intent], ..Draft::default() };
        Plan::assemble(&ABOUT, draft, vec![unknown.preview], Facts::default())
    };
    assert_eq!(unknown.items[0].item.impact_detail, Some(ImpactDetail { reboot: true, pools: vec![] }));
    assert_ne!(known.digest(), unknown.digest, "reboot");
}

static HARMLESS: [(&str, Edit); 8] = [
    ("the number of nodes", |it| it.pools[0]["status"]["machineCount"] = 4.into()),
    ("a pool that does not tell its number", |it| it.pools[0]["status"] = json!({})),
    ("a pool that is not reached", |it| {
        it.pools.push(json!({
            "metadata": {"name": "master"},
            "spec": {"machineConfigSelector": {"matchLabels": {"role": "master"}}},
        }))
    }),
    ("a foreign live field", |it| {
        it.live()["spec"]["kernelType"] = "realtime".into();
        it.result()["spec"]["kernelType"] = "realtime".into();
    }),
    ("a foreign label", |it| {
        it.live()["metadata"]["labels"]["team"] = "a".into();
        it.result()["metadata"]["labels"]["team"] = "a".into();
    }),
    ("what the server keeps for itself", |it| {
        it.live()["metadata"]["resourceVersion"] = "8".into();
        it.live()["status"] = json!({"phase": "Ready"});
    }),
    ("words", |it| {
        it.intent.message = "other".into();
        it.intent.why = "other";
        it.notes.push("noted".into());
    }),
    ("the order of keys", |it| {
        let text = r#"{"spec":{"kernelArguments":["a","b"]},"metadata":{"labels":{"role":"worker"},"name":"a"},"kind":"MachineConfig","apiVersion":"machineconfiguration.openshift.io/v1"}"#;
        *it.fields() = serde_json::from_str(text).unwrap();
    }),
];

#[test]
fn the_digest_does_not_change_with_anything_else() {
    let expected = Reviewed::new().digest();
    assert_eq!(Reviewed::new().digest(), expected);
    for (case, edit) in &HARMLESS {
        let mut reviewed = Reviewed::new();
        edit(&mut reviewed);
        assert_eq!(reviewed.digest(), expected, "{case}");
    }
}

proptest! {
    #![proptest_config(arbitrary::cases(96))]

    #[test]
    fn only_what_a_reviewer_has_read_makes_the_digest(
        harmless in proptest::sample::subsequence(&HARMLESS[..], 0..=HARMLESS.len()).prop_shuffle(),
        telling in proptest::sample::subsequence(&TELLING[..], 0..=1),
    ) {
        let edited = |edits: &[(&str, Edit)]| {
            let mut reviewed = Reviewed::new();
            edits.iter().for_each(|(_, edit)| edit(&mut reviewed));
            reviewed.digest()
        };
        prop_assert_eq!(edited(&[harmless, telling.clone()].concat()), edited(&telling));
    }
}

#[test]
fn a_pool_that_grows_is_told_but_voids_no_approval() {
    let mut grown = Reviewed::new();
    grown.pools[0]["status"]["machineCount"] = 40.into();
    let plan = grown.plan();
    let detail = plan.items[0].item.impact_detail.clone().unwrap();
    assert_eq!(detail.pools, [PoolImpact { name: "worker".into(), nodes: Some(40), ..PoolImpact::default() }]);
    assert_eq!(plan.digest, Reviewed::new().digest());
}

#[test]
fn whether_nodes_reboot_is_reviewed_whatever_the_severity() {
    let planned = Reviewed::new().plan().items.remove(0);
    let mut mild = planned.clone();
    mild.item.impact_detail.as_mut().unwrap().reboot = false;
    assert_ne!(mild.reviewed(), planned.reviewed());
}

#[test]
fn why_an_item_was_refused_is_reviewed_but_not_in_which_words() {
    let digest = |refusal: Refusal| {
        let mut reviewed = Reviewed::new();
        reviewed.preview.outcome = PreviewOutcome::Refused(refusal);
        reviewed.digest()
    };
    let forbidden = |message: &str| Refusal::Forbidden { target: "a".into(), message: message.into() };
    let invalid = Refusal::Invalid { target: "a".into(), message: "no".into() };
    assert_ne!(digest(forbidden("no")), digest(invalid));
    assert_eq!(digest(forbidden("no")), digest(forbidden("no, request 17")));
}
