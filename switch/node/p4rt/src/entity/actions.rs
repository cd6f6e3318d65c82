//! Actions with their arguments [P4Runtime sec 9.1.2].

use fairlane_pipeline::{ActionCall, Value};

use crate::model::Action;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

/// Reads an action, which must be one of `allowed`.
///
/// # Errors
/// INVALID_ARGUMENT that names the action and the parameter.
pub(super) fn decode<'a>(allowed: &'a [Action], given: &p4::Action) -> Result<(&'a Action, ActionCall)> {
    let Some(action) = allowed.iter().find(|action| action.id == given.action_id) else {
        return Err(match given.action_id {
            0 => Status::invalid("the action_id is 0 (not set)"),
            id => Status::invalid(format!("action id {id} (0x{id:08x}) is not an action of this table or profile")),
        });
    };
    let at = |status: Status| status.at(format!("action \"{}\"", action.name));
    let mut args = vec![None; action.params.len()];
    for param in &given.params {
        let Some(known) = action.params.iter().find(|known| known.id == param.param_id) else {
            return Err(at(Status::invalid(format!(
                "parameter id {} is not in the P4Info; it has {} parameters",
                param.param_id,
                action.params.len()
            ))));
        };
        let here = |status: Status| at(status.at(format!("parameter \"{}\"", known.name)));
        let slot = args.get_mut(known.position).ok_or_else(|| here(Status::internal("it is not in the program")))?;
        if slot.is_some() {
            return Err(here(Status::invalid("it is given twice")));
        }
        *slot = Some(known.scalar.decode(&param.value).map_err(here)?);
    }
    if let Some(missing) = action.params.iter().find(|param| args[param.position].is_none()) {
        return Err(at(Status::invalid(format!("parameter \"{}\" is missing", missing.name))));
    }
    let args: Vec<Value> = args.into_iter().flatten().collect();
    Ok((action, ActionCall { action: action.program, args }))
}

/// Writes an action; `None` when it is not in the P4Info (an action that the compiler made up).
pub(super) fn encode(allowed: &[Action], call: &ActionCall) -> Option<p4::Action> {
    let action = allowed.iter().find(|action| action.program == call.action)?;
    let params = action
        .params
        .iter()
        .filter_map(|param| Some(p4::action::Param { param_id: param.id, value: param.scalar.encode(call.args.get(param.position)?) }));
    Some(p4::Action { action_id: action.id, params: params.collect() })
}
