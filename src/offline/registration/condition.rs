//! A match condition: an expression of the Common Expression Language, compiled once.

use std::sync::Arc;

use cel::{Context, Env, Program, Value};

use super::variables::{OBJECTS, Variables};

/// A match condition. The API server sends a request if all conditions of an entry are true.
pub(super) struct Condition {
    pub(super) name: Arc<str>,
    /// The index in the entry.
    pub(super) place: usize,
    program: Program,
    /// Whether the expression reads the objects, which must then be parsed.
    pub(super) reads_objects: bool,
}

impl Condition {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Why the expression is not valid.
    pub(super) fn compile(env: &Env, place: usize, name: &str, expression: &str) -> Result<Self, String> {
        let program = env.compile(expression).map_err(|error| error.to_string())?;
        let references = program.references();
        let reads_objects = OBJECTS.iter().any(|object| references.has_variable(object));
        drop(references);
        Ok(Self { name: name.into(), place, program, reads_objects })
    }

    /// Whether the condition is true; `None` if it cannot be evaluated. Errors of the library are dropped, because they contain
    /// parts of the objects, which may be Secrets.
    pub(super) fn holds(&self, env: &Arc<Env>, variables: &Variables<'_>) -> Option<bool> {
        let mut context = Context::with_env(Arc::clone(env));
        context.set_variable_resolver(variables);
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }
}
