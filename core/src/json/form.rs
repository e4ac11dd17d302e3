//! One list of fields for both ways: what fills a record in from an object is what writes it as one.

use super::at::{At, Object};
use super::write::Fields;
use crate::Span;

/// An object whose fields are gone through one after the other.
pub(crate) enum Form<'f, 'o> {
    /// Says which fields there are.
    Names(Vec<&'static str>),
    /// Fills in what is given.
    Read(Object<'f>),
    /// Writes all.
    Write(&'f mut Fields<'o>),
}

/// What a field may hold.
pub(crate) trait Value {
    fn read(&mut self, at: &At<'_>);
    fn write(&mut self, out: &mut Fields<'_>, name: &str);
}

/// What is written as an object.
pub(crate) trait Record {
    /// Goes through its fields.
    fn fields(&mut self, form: &mut Form<'_, '_>);
}

impl Form<'_, '_> {
    /// The next field. Where it is not given, or `null`, its value stays what it is.
    pub fn field(&mut self, name: &'static str, value: &mut dyn Value) {
        match self {
            Form::Names(names) => names.push(name),
            Form::Read(object) => object.fill(name, value),
            Form::Write(out) => value.write(out, name),
        }
    }

    /// The next field is only written: what it says follows from others.
    pub fn derived(&mut self, name: &'static str, write: &mut dyn FnMut(&mut Fields<'_>)) {
        match self {
            Form::Names(names) => names.push(name),
            Form::Read(_) => {}
            Form::Write(out) => write(out),
        }
    }

    pub fn reads(&self) -> bool {
        matches!(self, Form::Read(_))
    }

    pub fn writes(&self) -> bool {
        matches!(self, Form::Write(_))
    }
}

/// The object that stands here, with no fields but those of the record.
pub(crate) fn object<'a>(at: &'a At<'a>, record: &mut dyn Record) -> Object<'a> {
    let mut form = Form::Names(Vec::new());
    record.fields(&mut form);
    let Form::Names(names) = form else { return at.object(&[]) };
    at.object(&names)
}

/// Fills in what stands here.
pub(crate) fn read(at: &At<'_>, record: &mut dyn Record) {
    let object = object(at, record);
    record.fields(&mut Form::Read(object));
}

/// Writes all fields of a record.
pub(crate) fn write(out: &mut Fields<'_>, record: &mut dyn Record) {
    record.fields(&mut Form::Write(out));
}

impl<T: Record> Value for T {
    fn read(&mut self, at: &At<'_>) {
        read(at, self);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.object(name, |out| write(out, self));
    }
}

impl<T: Value + Default> Value for Option<T> {
    fn read(&mut self, at: &At<'_>) {
        self.insert(T::default()).read(at);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        match self {
            Some(value) => value.write(out, name),
            None => out.text(name, None),
        }
    }
}

impl<T: Record> Record for Box<T> {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        (**self).fields(form);
    }
}

impl Value for u64 {
    fn read(&mut self, at: &At<'_>) {
        *self = at.big();
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.number(name, *self);
    }
}

impl Value for u32 {
    fn read(&mut self, at: &At<'_>) {
        *self = at.count32(0, u32::MAX);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.count(name, *self);
    }
}

impl Value for usize {
    fn read(&mut self, at: &At<'_>) {
        *self = at.count32(0, u32::MAX) as usize;
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.number(name, *self as u64);
    }
}

/// In the core's own documents a span is its nanoseconds; a driver may also write a duration with a unit.
impl Value for Span {
    fn read(&mut self, at: &At<'_>) {
        *self = at.nanos();
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.number(name, self.as_nanos());
    }
}

impl Value for bool {
    fn read(&mut self, at: &At<'_>) {
        *self = at.flag();
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.flag(name, *self);
    }
}

impl Value for String {
    fn read(&mut self, at: &At<'_>) {
        *self = at.words();
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.text(name, self.as_str());
    }
}
