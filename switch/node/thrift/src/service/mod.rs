//! BMv2's services as functions over a device: the method's name and its arguments in, what BMv2 answers out.
//!
//! Names, numbers of arguments and error codes are those of behavioral-model's interface (`thrift_src/`, `targets/simple_switch/thrift/`).

mod cells;
mod codes;
mod management;
mod profiles;
mod replication;
mod simple_switch;
mod tables;

use fairlane_device::pipeline::{ActionCall, ActionId, ActionInfo, Program, Switch, Value as Number};
use fairlane_device::{Device, Nanos};

use crate::value::{BadField, Fields, Value};

use replication::Replication;
pub(crate) use tables::handle_number;

pub(crate) const INVALID_LIST: i32 = codes::learn::INVALID_LIST;
pub(crate) const PORT_ERROR: i32 = codes::ports::ERROR;

/// What a switch says of itself.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub device_id: u64,
    pub thrift_port: u16,
    /// The address of the notifications' socket.
    pub notifications: Option<String>,
    /// The address of the event log's socket.
    pub event_log: Option<String>,
    /// Nanoseconds since 1970 at the device's instant 0.
    pub epoch: Nanos,
    /// The device's instant at which the switch was started.
    pub started: Nanos,
    /// `bm_load_new_config` and `bm_swap_configs` are allowed (BMv2's `--enable-swap`).
    pub swap: bool,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The exception that the method declares, with BMv2's code.
    Refused(i32),
    /// There is no such service or method.
    UnknownMethod,
    /// An argument is missing, or of another type.
    BadArgument(String),
    /// The method declares no exception, and yet this cannot be done.
    Impossible(String),
}

impl From<BadField> for Failure {
    fn from(BadField(number): BadField) -> Failure {
        Failure::BadArgument(format!("argument {number} is missing or of another type"))
    }
}

/// A result: `None` is `void`.
pub type Answer = Result<Option<Value>, Failure>;

/// The services of one device.
#[derive(Debug)]
pub struct Core {
    identity: Identity,
    replication: Replication,
    /// A program that was loaded and not yet swapped in: in a device like the one that runs.
    staged: Option<Box<Device>>,
    /// What a swap leaves behind. Dropping it may take long, where tables were large.
    retired: Option<Box<Device>>,
}

/// A call on its way through a service.
struct Call<'a> {
    core: &'a mut Core,
    device: &'a mut Device,
    now: Nanos,
    args: &'a Fields,
}

/// The only context there is.
const CONTEXT: i32 = 0;

impl Core {
    /// Services of a device that is so.
    pub fn new(identity: Identity) -> Core {
        Core { identity, replication: Replication::default(), staged: None, retired: None }
    }

    /// What the switch says of itself.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Calls a method of a service.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn call(&mut self, service: &str, method: &str, args: &Fields, device: &mut Device, now: Nanos) -> Answer {
        let call = Call { core: self, device, now, args };
        match service {
            "standard" => call.standard(method),
            "simple_pre" => call.replicate(method, false),
            "simple_pre_lag" => call.replicate(method, true),
            "simple_switch" => call.simple_switch(method),
            _ => Err(Failure::UnknownMethod),
        }
    }

    /// A part of what `bm_mt_get_entries` answers, from a place of the table on, and from which place to go on: packets come between the
    /// parts.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn entries(
        &mut self,
        args: &Fields,
        device: &mut Device,
        now: Nanos,
        first: usize,
    ) -> Result<(Vec<Value>, Option<usize>), Failure> {
        Call { core: self, device, now, args }.entries(first)
    }

    /// A program for `bm_swap_configs` to put in.
    ///
    /// # Errors
    /// BMv2's code, where swapping is disabled or one is under way.
    pub fn stage(&mut self, fresh: Box<Device>) -> Result<(), Failure> {
        self.may_stage()?;
        self.staged = Some(fresh);
        Ok(())
    }

    /// What the last swap left behind, for another thread than the device's to drop.
    pub fn take_retired(&mut self) -> Option<Box<Device>> {
        self.retired.take()
    }

    /// Whether a program may be staged.
    ///
    /// # Errors
    /// BMv2's code.
    pub fn may_stage(&self) -> Result<(), Failure> {
        match (self.identity.swap, &self.staged) {
            (false, _) => Err(Failure::Refused(codes::swap::DISABLED)),
            (true, Some(_)) => Err(Failure::Refused(codes::swap::ONGOING)),
            (true, None) => Ok(()),
        }
    }
}

impl Call<'_> {
    /// The switch, or a refusal: without a program there is nothing of that name.
    fn switch(&self, without: i32) -> Result<&Switch, Failure> {
        self.device.switch().ok_or(Failure::Refused(without))
    }

    fn switch_mut(&mut self, without: i32) -> Result<&mut Switch, Failure> {
        self.device.switch_mut().ok_or(Failure::Refused(without))
    }

    fn check_context(&self) -> Result<(), Failure> {
        match self.args.i32(1)? {
            CONTEXT => Ok(()),
            other => Err(Failure::BadArgument(format!("there is no context {other}, only {CONTEXT}"))),
        }
    }

    fn standard(mut self, method: &str) -> Answer {
        let Some(rest) = method.strip_prefix("bm_") else { return Err(Failure::UnknownMethod) };
        match rest {
            _ if rest.starts_with("mt_act_prof_") => self.profile(&rest["mt_act_prof_".len()..]),
            _ if rest.starts_with("mt_") => self.table(&rest["mt_".len()..]),
            _ if rest.starts_with("counter_") => self.counter(&rest["counter_".len()..]),
            _ if rest.starts_with("meter_") => self.meter(&rest["meter_".len()..]),
            _ if rest.starts_with("register_") => self.register(&rest["register_".len()..]),
            _ if rest.starts_with("parse_vset_") => self.value_set(&rest["parse_vset_".len()..]),
            _ => self.management(rest),
        }
    }
}

/// The action of these with this name. Compilers give some actions (`NoAction`) several ids under one name.
fn action_named<'a>(program: &'a Program, of: impl IntoIterator<Item = &'a ActionId>, name: &str) -> Option<(ActionId, &'a ActionInfo)> {
    of.into_iter().filter_map(|&id| Some((id, program.action(id)?))).find(|(_, info)| info.name == name)
}

/// An action with its data, each cut to its parameter's width as in BMv2; `None` when their numbers differ.
fn action_call(id: ActionId, info: &ActionInfo, data: &[Value]) -> Option<ActionCall> {
    if data.len() != info.params.len() {
        return None;
    }
    let argument = |(value, param): (&Value, &fairlane_device::pipeline::ParamInfo)| match value {
        Value::Bytes(bytes) => Some(cut(bytes, param.width)),
        _ => None,
    };
    let args = data.iter().zip(&info.params).map(argument).collect::<Option<_>>()?;
    Some(ActionCall { action: id, args })
}

/// Big-endian bytes as a number of so many bits; bits beyond are lost.
fn cut(bytes: &[u8], width: u32) -> Number {
    let length = width.div_ceil(8) as usize;
    let mut kept = bytes[bytes.len().saturating_sub(length)..].to_vec();
    if kept.len() == length && !width.is_multiple_of(8) {
        kept[0] &= (1 << (width % 8)) - 1;
    }
    Number::from_be_bytes(&kept)
}

/// A number as BMv2 writes one in an action's data: without leading zeros, and with a byte at least.
fn plain(number: &Number) -> Value {
    Value::Bytes(number.as_bytes().to_vec())
}

fn action_data(call: &ActionCall) -> Value {
    Value::List(crate::value::Kind::Bytes, call.args.iter().map(plain).collect())
}

fn index(number: i32, beyond: i32) -> Result<usize, Failure> {
    usize::try_from(number).map_err(|_| Failure::Refused(beyond))
}
