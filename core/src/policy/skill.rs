//! A chain from skill manifests, expanded one level.
//!
//! Manifests belong to somebody else's system: only four of their fields are read here, the others are not ours to
//! judge.

use super::error::ConfigError;
use super::fields::{Fields, Target};
use crate::Span;
use crate::json::Json;
use crate::json::at::{At, Read};
use crate::text::{joined, said};

/// One manifest: its skill's id, and where it stands.
struct Manifest<'a> {
    id: String,
    at: At<'a>,
}

/// The fields of the policy for this skill.
pub(super) fn fields(id: &str, manifests: &Json, unit: Option<Span>) -> Read<Fields> {
    let root = At::root("policy", manifests, unit);
    let all = manifests_of(&root)?;
    let Some(own) = named(&all, id) else {
        let value = Json::Text(id.into()).text();
        return Err(Box::new(ConfigError { field: "skill".into(), value, allowed: known(&all) }));
    };
    let mut fields = Fields { targets: vec![target(own)?], ..Fields::default() };
    if let Some(at) = own.field("priority") {
        fields.priority = at.count32(0, 1_000)?;
    }
    if let Some(at) = own.field("requires_human_fallback") {
        fields.requires_human_fallback = at.flag()?;
    }
    if let Some(at) = own.field("fallback_skill_id") {
        let fallback = at.text()?;
        let manifest = named(&all, &fallback).ok_or_else(|| at.refuse_owned(known(&all)))?;
        if fallback == id {
            return Err(at.refuse("another skill than itself"));
        }
        fields.targets.push(target(manifest)?);
    }
    Ok(fields)
}

fn manifests_of<'a>(root: &'a At<'a>) -> Read<Vec<Manifest<'a>>> {
    let mut all: Vec<Manifest<'a>> = Vec::new();
    if let Ok(entries) = root.entries() {
        for (id, at) in entries {
            drop(at.entries()?);
            all.push(Manifest { id: id.to_owned(), at });
        }
        return Ok(all);
    }
    for at in root.list(1, 10_000)? {
        drop(at.entries()?);
        let id = at.get("skill_id").ok_or_else(|| at.refuse("a manifest that names its skill in skill_id"))?.text()?;
        if all.iter().any(|m| m.id == id) {
            return Err(at.refuse("one manifest for each skill_id"));
        }
        all.push(Manifest { id, at });
    }
    Ok(all)
}

fn target(manifest: &Manifest<'_>) -> Read<Target> {
    let timeout = manifest.field("timeout_per_call").map(|at| at.positive_span()).transpose()?;
    Ok(Target { attempt_timeout: timeout, ..Target::named(&manifest.id) })
}

impl Manifest<'_> {
    /// The field where it is given and not null.
    fn field(&self, name: &'static str) -> Option<At<'_>> {
        self.at.get(name).filter(|at| !at.is_null())
    }
}

fn named<'m, 'a>(all: &'m [Manifest<'a>], id: &str) -> Option<&'m Manifest<'a>> {
    all.iter().find(|m| m.id == id)
}

fn known(all: &[Manifest<'_>]) -> String {
    let ids: Vec<_> = all.iter().map(|m| m.id.as_str()).take(50).collect();
    said!["a skill that has a manifest: ", joined(ids, ", ")]
}
