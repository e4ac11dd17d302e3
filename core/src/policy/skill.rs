//! A chain from skill manifests, expanded one level.
//!
//! Manifests belong to somebody else's system: only four of their fields are read here, the others are not ours to
//! judge.

use super::error::ConfigError;
use super::fields::{Fields, Target};
use crate::Span;
use crate::json::Json;
use crate::json::at::{self, At, Read};
use crate::text::{joined, said};

/// One manifest: its skill's id, and where it stands.
struct Manifest<'a> {
    id: String,
    at: At<'a>,
}

/// The fields of the policy for this skill.
pub(super) fn fields(id: &str, manifests: &Json, unit: Option<Span>) -> Read<Fields> {
    let mut found = Err(String::new());
    at::read("policy", manifests, unit, &mut |root| {
        let all = manifests_of(root);
        found = named(&all, id).map(|own| chain(own, &all)).ok_or_else(|| known(&all));
    })?;
    found.map_err(|allowed| {
        let value = Json::Text(id.into()).text();
        Box::new(ConfigError { field: "skill".into(), value, allowed })
    })
}

fn chain(own: &Manifest<'_>, all: &[Manifest<'_>]) -> Fields {
    let mut fields = Fields { targets: vec![target(own)], ..Fields::default() };
    if let Some(at) = own.field("priority") {
        fields.priority = at.count32(0, 1_000);
    }
    if let Some(at) = own.field("requires_human_fallback") {
        fields.requires_human_fallback = at.flag();
    }
    if let Some(at) = own.field("fallback_skill_id") {
        let fallback = at.text();
        match named(all, &fallback) {
            None => at.refuse(&known(all)),
            Some(_) if fallback == own.id => at.refuse("another skill than itself"),
            Some(manifest) => fields.targets.push(target(manifest)),
        }
    }
    fields
}

fn manifests_of<'a>(root: &'a At<'a>) -> Vec<Manifest<'a>> {
    let mut all: Vec<Manifest<'a>> = Vec::new();
    if root.value.as_map().is_some() {
        return root.entries().map(|(id, at)| Manifest::of(id.to_owned(), at)).collect();
    }
    for at in root.list(1, 10_000) {
        let id = match at.get("skill_id") {
            Some(at) => at.text(),
            None => at.refuse("a manifest that names its skill in skill_id"),
        };
        if all.iter().any(|m| m.id == id) {
            at.refuse::<()>("one manifest for each skill_id");
        }
        all.push(Manifest::of(id, at));
    }
    all
}

fn target(manifest: &Manifest<'_>) -> Target {
    let timeout = manifest.field("timeout_per_call").map(|at| at.positive_span());
    Target { attempt_timeout: timeout, ..Target::named(&manifest.id) }
}

impl<'a> Manifest<'a> {
    fn of(id: String, at: At<'a>) -> Manifest<'a> {
        drop(at.entries());
        Manifest { id, at }
    }

    /// The field where it is given and not null.
    fn field(&self, name: &'static str) -> Option<At<'_>> {
        self.at.get(name).filter(|at| !at.is_null())
    }
}

fn named<'m, 'a>(all: &'m [Manifest<'a>], id: &str) -> Option<&'m Manifest<'a>> {
    all.iter().find(|m| m.id == id)
}

fn known(all: &[Manifest<'_>]) -> String {
    said!["a skill that has a manifest: ", joined(all.iter().map(|m| m.id.as_str()).take(50), ", ")]
}
