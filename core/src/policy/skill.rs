//! A chain from skill manifests, expanded one level.
//!
//! Manifests belong to somebody else's system: only four of their fields are read here, the others are not ours to
//! judge.

use super::at::{At, Read};
use super::error::ConfigError;
use super::fields::{Fields, Target};
use super::input::Input;
use crate::Span;

/// One manifest: its skill's id, and where it stands.
struct Manifest<'a> {
    id: String,
    fields: Vec<(&'a String, At<'a>)>,
}

/// The fields of the policy for this skill.
pub(super) fn fields(id: &str, manifests: &Input, unit: Option<Span>) -> Read<Fields> {
    let all = manifests_of(&At::root(manifests, unit))?;
    let own = named(&all, id).ok_or_else(|| unknown("skill", id, &all))?;
    let mut fields = Fields { targets: vec![target(own)?], ..Fields::default() };
    if let Some(at) = field(own, "priority") {
        fields.priority = at.count32(0, 1_000)?;
    }
    if let Some(at) = field(own, "requires_human_fallback") {
        fields.requires_human_fallback = at.flag()?;
    }
    if let Some(at) = field(own, "fallback_skill_id") {
        let fallback = at.text()?;
        let manifest = named(&all, &fallback).ok_or_else(|| at.refuse(known(&all)))?;
        if fallback == id {
            return Err(at.refuse("another skill than itself"));
        }
        fields.targets.push(target(manifest)?);
    }
    Ok(fields)
}

fn manifests_of<'a>(at: &At<'a>) -> Read<Vec<Manifest<'a>>> {
    let mut all: Vec<Manifest<'a>> = Vec::new();
    if let Ok(entries) = at.entries() {
        for (id, at) in entries {
            all.push(Manifest { id: id.clone(), fields: at.entries()? });
        }
        return Ok(all);
    }
    for at in at.list(1, 10_000)? {
        let fields = at.entries()?;
        let named = fields.iter().find(|(name, _)| *name == "skill_id");
        let id = named.ok_or_else(|| at.refuse("a manifest that names its skill in skill_id"))?.1.text()?;
        if all.iter().any(|m| m.id == id) {
            return Err(at.refuse("one manifest for each skill_id"));
        }
        all.push(Manifest { id, fields });
    }
    Ok(all)
}

fn target(manifest: &Manifest<'_>) -> Read<Target> {
    let timeout = field(manifest, "timeout_per_call").map(At::positive_span).transpose()?;
    Ok(Target { attempt_timeout: timeout, ..Target::named(&manifest.id) })
}

/// The field where it is given and not null.
fn field<'m, 'a>(manifest: &'m Manifest<'a>, name: &str) -> Option<&'m At<'a>> {
    manifest.fields.iter().find(|(n, at)| *n == name && !at.is_null()).map(|(_, at)| at)
}

fn named<'m, 'a>(all: &'m [Manifest<'a>], id: &str) -> Option<&'m Manifest<'a>> {
    all.iter().find(|m| m.id == id)
}

fn unknown(field: &str, id: &str, all: &[Manifest<'_>]) -> ConfigError {
    ConfigError { field: field.into(), value: Input::Text(id.into()).to_string(), allowed: known(all) }
}

fn known(all: &[Manifest<'_>]) -> String {
    let ids: Vec<_> = all.iter().map(|m| m.id.as_str()).take(50).collect();
    format!("a skill that has a manifest: {}", ids.join(", "))
}
