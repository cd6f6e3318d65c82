//! A P4Info message beside the program it describes: what each id means in the data plane.
//!
//! P4Info and BMv2 JSON come from one run of a compiler and name the same objects. [`Model::new`] checks that they do: ids are
//! unique, every object of P4Info exists in the program under its name, with the same key fields, parameters, widths and kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_pipeline::{
    ActionId, CounterId, DigestId, MatchKind, MeterId, MeterUnit, ProfileId, Program, RegisterId, TableId, ValueSetId,
};

use crate::proto::p4::config::v1 as config;
use crate::types::{DataType, Encoding, Scalar};

use config::match_field::MatchType;

/// One field of a key.
#[derive(Debug, Clone)]
pub struct Field {
    /// `field_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// Match type in P4Info.
    pub kind: MatchType,
    /// Place in the program's key.
    pub position: usize,
    /// Width and encoding.
    pub scalar: Scalar,
    /// The field is a header's validity (P4_14's `valid`).
    pub validity: bool,
}

/// One parameter of an action.
#[derive(Debug, Clone)]
pub struct Param {
    /// `param_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// Place in the program's list of parameters.
    pub position: usize,
    /// Width and encoding.
    pub scalar: Scalar,
}

/// An action as one table or profile may use it.
#[derive(Debug, Clone)]
pub struct Action {
    /// `action_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// The program's action.
    pub program: ActionId,
    /// Where it may be used.
    pub scope: config::action_ref::Scope,
    /// Parameters in order of the P4Info.
    pub params: Vec<Param>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// `table_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// The program's table.
    pub program: TableId,
    /// Key fields in order of the P4Info.
    pub fields: Vec<Field>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Entries have a priority (a field is ternary, range or optional).
    pub needs_priority: bool,
    /// Action profile, by its P4Info id.
    pub profile: Option<u32>,
    /// There is a direct counter.
    pub direct_counter: bool,
    /// The type of the direct meter, when there is one.
    pub direct_meter: Option<config::meter_spec::Type>,
    /// Entries may have an idle timeout.
    pub idle_timeout: bool,
    /// Entries cannot be written.
    pub is_const: bool,
    /// The default action cannot be written.
    pub const_default: bool,
}

/// An action profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// `action_profile_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// The program's profile.
    pub program: ProfileId,
    /// Groups are allowed.
    pub with_selector: bool,
    /// Largest size of a group; 0 is not limited.
    pub max_group_size: u32,
    /// A group's size is its number of members, whose weights are at most this (0: not limited); otherwise the sum of weights.
    pub sum_of_members: Option<u32>,
    /// Weights must be 0.
    pub weights_disallowed: bool,
    /// What members may do.
    pub actions: Vec<Action>,
    /// Tables that use it, by P4Info id.
    pub tables: Vec<u32>,
}

/// An array of cells, or a direct resource: name, program object and number of cells.
#[derive(Debug, Clone)]
pub struct Array<T> {
    /// Name, for messages.
    pub name: String,
    /// The program's object.
    pub program: T,
    /// Number of cells.
    pub size: usize,
}

/// An indirect meter.
#[derive(Debug, Clone)]
pub struct Meter {
    /// Name, place and size.
    pub array: Array<MeterId>,
    /// Which fields of a configuration have a meaning.
    pub kind: config::meter_spec::Type,
}

/// A register.
#[derive(Debug, Clone)]
pub struct Register {
    /// Name, place and size.
    pub array: Array<RegisterId>,
    /// Type of a cell: one leaf.
    pub data: DataType,
}

/// A digest.
#[derive(Debug, Clone)]
pub struct Digest {
    /// `digest_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// The program's learn list.
    pub program: DigestId,
    /// Type of one message.
    pub data: DataType,
}

/// A parser value set.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// `value_set_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// The program's value set.
    pub program: ValueSetId,
    /// Fields in order; the first has the most significant bits.
    pub fields: Vec<Field>,
    /// Largest number of members; 0 is not limited.
    pub size: usize,
}

/// One metadata field of packet-in or packet-out.
#[derive(Debug, Clone)]
pub struct PacketField {
    /// `metadata_id`.
    pub id: u32,
    /// Name, for messages.
    pub name: String,
    /// Width and encoding.
    pub scalar: Scalar,
}

/// P4Info beside its program. See the module.
#[derive(Debug)]
pub struct Model {
    /// The program.
    pub program: Arc<Program>,
    /// Tables by id.
    pub tables: BTreeMap<u32, Table>,
    /// Action profiles by id.
    pub profiles: BTreeMap<u32, Profile>,
    /// Indirect counters by id.
    pub counters: BTreeMap<u32, Array<CounterId>>,
    /// Indirect meters by id.
    pub meters: BTreeMap<u32, Meter>,
    /// Registers by id.
    pub registers: BTreeMap<u32, Register>,
    /// Digests by id.
    pub digests: BTreeMap<u32, Digest>,
    /// Value sets by id.
    pub value_sets: BTreeMap<u32, ValueSet>,
    /// The header of packet-in, empty when there is none.
    pub packet_in: Vec<PacketField>,
    /// The header of packet-out, empty when there is none.
    pub packet_out: Vec<PacketField>,
}

/// A sentence that says where P4Info and program differ.
type Check<T> = Result<T, String>;

impl Model {
    /// Looks up everything that P4Info names in the program.
    ///
    /// # Errors
    /// A sentence that names the first object on which the two do not agree.
    pub fn new(info: &config::P4Info, program: Arc<Program>) -> Check<Model> {
        let none = config::P4TypeInfo::default();
        let types = info.type_info.as_ref().unwrap_or(&none);
        let context = Context { info, program: &program, types };
        let mut model = Model {
            tables: index(context.tables(), |table| (table.id, table.name.clone()))?,
            profiles: BTreeMap::new(),
            counters: context.counters()?,
            meters: context.meters()?,
            registers: context.registers()?,
            digests: context.digests()?,
            value_sets: context.value_sets()?,
            packet_in: context.packet_header("packet_in")?,
            packet_out: context.packet_header("packet_out")?,
            program: Arc::clone(&program),
        };
        model.profiles = context.profiles(&model.tables)?;
        for table in model.tables.values() {
            if let Some(id) = table.profile.filter(|id| !model.profiles.contains_key(id)) {
                return Err(format!("table \"{}\": implementation_id {id} is no action profile of the P4Info", table.name));
            }
        }
        Ok(model)
    }

    /// The table that is `program`'s, if P4Info has it.
    pub fn table_of(&self, program: TableId) -> Option<&Table> {
        self.tables.values().find(|table| table.program == program)
    }

    /// The digest that is `program`'s, if P4Info has it.
    pub fn digest_of(&self, program: DigestId) -> Option<&Digest> {
        self.digests.values().find(|digest| digest.program == program)
    }
}

impl Table {
    /// The action with this id.
    pub fn action(&self, id: u32) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// The action that is the program's.
    pub fn action_of(&self, program: ActionId) -> Option<&Action> {
        self.actions.iter().find(|action| action.program == program)
    }
}

impl Profile {
    /// The action with this id.
    pub fn action(&self, id: u32) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// The action that is the program's.
    pub fn action_of(&self, program: ActionId) -> Option<&Action> {
        self.actions.iter().find(|action| action.program == program)
    }
}

fn index<T>(items: Check<Vec<T>>, key: impl Fn(&T) -> (u32, String)) -> Check<BTreeMap<u32, T>> {
    let mut map = BTreeMap::new();
    for item in items? {
        let (id, name) = key(&item);
        if id == 0 {
            return Err(format!("\"{name}\" has id 0, which P4Runtime reserves"));
        }
        if map.insert(id, item).is_some() {
            return Err(format!("\"{name}\": id {id} (0x{id:08x}) is used twice"));
        }
    }
    Ok(map)
}

struct Context<'a> {
    info: &'a config::P4Info,
    program: &'a Arc<Program>,
    types: &'a config::P4TypeInfo,
}

fn preamble(preamble: &Option<config::Preamble>, what: &str) -> Check<(u32, String)> {
    match preamble {
        Some(preamble) => Ok((preamble.id, preamble.name.clone())),
        None => Err(format!("a {what} of the P4Info has no preamble")),
    }
}

fn absent(what: &str, name: &str) -> String {
    format!("{what} \"{name}\" of the P4Info is not in the BMv2 JSON: take both from one run of the compiler")
}

fn kinds_agree(kind: MatchType, program: MatchKind) -> bool {
    matches!(
        (kind, program),
        (MatchType::Exact, MatchKind::Exact | MatchKind::Valid)
            | (MatchType::Lpm, MatchKind::Lpm)
            | (MatchType::Ternary, MatchKind::Ternary)
            | (MatchType::Range, MatchKind::Range)
            | (MatchType::Optional, MatchKind::Optional | MatchKind::Ternary)
    )
}

impl Context<'_> {
    /// Width and encoding of a scalar that is `width` bits in the data plane (`None`: P4Info alone knows).
    fn scalar(&self, bitwidth: i32, type_name: Option<&config::P4NamedType>, width: Option<u32>) -> Check<Scalar> {
        let (own, encoding) = crate::types::encoding(bitwidth, type_name, self.types)?;
        match (own, width) {
            (Some(own), Some(width)) if own != width => {
                Err(format!("{own} bits in the P4Info, {width} bits in the BMv2 JSON: take both from one run of the compiler"))
            }
            (Some(width), _) | (None, Some(width)) => Ok(Scalar { width, encoding }),
            (None, None) => match encoding {
                Encoding::SdnBits(width) => Ok(Scalar { width, encoding }),
                _ => Err("the width of a type translated to strings is not known here".to_string()),
            },
        }
    }

    fn tables(&self) -> Check<Vec<Table>> {
        self.info.tables.iter().map(|table| self.table(table)).collect()
    }

    fn table(&self, table: &config::Table) -> Check<Table> {
        let (id, name) = preamble(&table.preamble, "table")?;
        let program_id = self.program.table_by_name(&name).ok_or_else(|| absent("table", &name))?;
        let at = |text: String| format!("table \"{name}\": {text}");
        let Some(program) = self.program.table(program_id) else { return Err(absent("table", &name)) };
        if program.key.len() != table.match_fields.len() {
            return Err(at(format!(
                "{} key fields in the P4Info, {} in the BMv2 JSON: take both from one run of the compiler",
                table.match_fields.len(),
                program.key.len()
            )));
        }
        // Names agree in general; where they do not (annotations, `isValid()`), the order does.
        let by_name = table.match_fields.iter().all(|field| program.key.iter().any(|key| key.name == field.name));
        let mut fields = Vec::with_capacity(table.match_fields.len());
        for (index, field) in table.match_fields.iter().enumerate() {
            let position = if by_name { program.key.iter().position(|key| key.name == field.name).unwrap_or(index) } else { index };
            let key = &program.key[position];
            let here = |text: String| at(format!("key field \"{}\": {text}", field.name));
            let kind = match_type(field).map_err(here)?;
            if !kinds_agree(kind, key.kind) {
                return Err(here(format!("{} in the P4Info, {:?} in the BMv2 JSON", kind.as_str_name(), key.kind)));
            }
            let scalar = self.scalar(field.bitwidth, field.type_name.as_ref(), Some(key.width)).map_err(here)?;
            if scalar.encoding == Encoding::SdnString && !matches!(kind, MatchType::Exact | MatchType::Optional) {
                return Err(here(format!("a type translated to strings cannot be matched {}", kind.as_str_name())));
            }
            fields.push(Field { id: field.id, name: field.name.clone(), kind, position, scalar, validity: key.kind == MatchKind::Valid });
        }
        let actions = self.actions(&table.action_refs, &program.actions).map_err(at)?;
        let direct = self.direct_resources(table);
        if direct.0 && program.direct_counter.is_none() {
            return Err(at("it has a direct counter in the P4Info, none in the BMv2 JSON".to_string()));
        }
        if direct.1.is_some() && program.direct_meter.is_none() {
            return Err(at("it has a direct meter in the P4Info, none in the BMv2 JSON".to_string()));
        }
        let profile = (table.implementation_id != 0).then_some(table.implementation_id);
        if profile.is_some() != program.profile.is_some() {
            return Err(at("it has an action profile in only one of P4Info and BMv2 JSON".to_string()));
        }
        let idle_timeout = table.idle_timeout_behavior() == config::table::IdleTimeoutBehavior::NotifyControl;
        if idle_timeout && !program.support_timeout {
            return Err(at("it has idle timeouts in the P4Info, none in the BMv2 JSON".to_string()));
        }
        Ok(Table {
            id,
            needs_priority: fields.iter().any(|field| matches!(field.kind, MatchType::Ternary | MatchType::Range | MatchType::Optional)),
            program: program_id,
            fields,
            actions,
            profile,
            direct_counter: direct.0,
            direct_meter: direct.1,
            idle_timeout,
            is_const: table.is_const_table || program.const_entries,
            const_default: table.const_default_action_id != 0 || program.const_default,
            name,
        })
    }

    /// Whether a table has a direct counter, and of what type its direct meter is.
    fn direct_resources(&self, table: &config::Table) -> (bool, Option<config::meter_spec::Type>) {
        let has = |preamble: &Option<config::Preamble>| {
            preamble.as_ref().is_some_and(|preamble| table.direct_resource_ids.contains(&preamble.id))
        };
        let counter = self.info.direct_counters.iter().any(|counter| has(&counter.preamble));
        let meter = self
            .info
            .direct_meters
            .iter()
            .find(|meter| has(&meter.preamble))
            .map(|meter| meter.spec.as_ref().map(|spec| spec.r#type()).unwrap_or_default());
        (counter, meter)
    }

    fn actions(&self, refs: &[config::ActionRef], allowed: &[ActionId]) -> Check<Vec<Action>> {
        let named = |name: &str| allowed.iter().copied().find(|id| self.program.action(*id).is_some_and(|action| action.name == name));
        refs.iter()
            .map(|reference| {
                let action = self
                    .info
                    .actions
                    .iter()
                    .find(|action| action.preamble.as_ref().is_some_and(|preamble| preamble.id == reference.id))
                    .ok_or_else(|| format!("action id {} is not defined in the P4Info", reference.id))?;
                let (id, name) = preamble(&action.preamble, "action")?;
                let program_id = named(&name).ok_or_else(|| absent("action", &name))?;
                let Some(program) = self.program.action(program_id) else { return Err(absent("action", &name)) };
                if program.params.len() != action.params.len() {
                    return Err(format!(
                        "action \"{name}\" has {} parameters in the P4Info, {} in the BMv2 JSON",
                        action.params.len(),
                        program.params.len()
                    ));
                }
                let by_name = action.params.iter().all(|param| program.params.iter().any(|other| other.name == param.name));
                let params = action.params.iter().enumerate().map(|(index, param)| {
                    let position = match by_name {
                        true => program.params.iter().position(|other| other.name == param.name).unwrap_or(index),
                        false => index,
                    };
                    let width = program.params[position].width;
                    let scalar = self
                        .scalar(param.bitwidth, param.type_name.as_ref(), Some(width))
                        .map_err(|text| format!("action \"{name}\": parameter \"{}\": {text}", param.name))?;
                    Ok(Param { id: param.id, name: param.name.clone(), position, scalar })
                });
                Ok(Action { id, params: params.collect::<Check<Vec<_>>>()?, program: program_id, scope: reference.scope(), name })
            })
            .collect()
    }

    fn profiles(&self, tables: &BTreeMap<u32, Table>) -> Check<BTreeMap<u32, Profile>> {
        use config::action_profile::SelectorSizeSemantics;
        let profiles = self.info.action_profiles.iter().map(|profile| {
            let (id, name) = preamble(&profile.preamble, "action profile")?;
            let program_id = self.program.profile_by_name(&name).ok_or_else(|| absent("action profile", &name))?;
            let program = self.program.profile(program_id);
            if program.is_some_and(|program| program.with_selector != profile.with_selector) {
                return Err(format!("action profile \"{name}\" has a selector in only one of P4Info and BMv2 JSON"));
            }
            let users: Vec<&Table> = tables.values().filter(|table| table.profile == Some(id)).collect();
            Ok(Profile {
                id,
                program: program_id,
                with_selector: profile.with_selector,
                max_group_size: u32::try_from(profile.max_group_size).unwrap_or(0),
                sum_of_members: match &profile.selector_size_semantics {
                    Some(SelectorSizeSemantics::SumOfMembers(sum)) => Some(u32::try_from(sum.max_member_weight).unwrap_or(0)),
                    _ => None,
                },
                weights_disallowed: profile.weights_disallowed,
                actions: users.first().map(|table| table.actions.clone()).unwrap_or_default(),
                tables: users.iter().map(|table| table.id).collect(),
                name,
            })
        });
        index(profiles.collect(), |profile| (profile.id, profile.name.clone()))
    }

    /// A size of P4Info and of the program, which must agree.
    fn size(&self, what: &str, name: &str, info: i64, program: usize) -> Check<usize> {
        if usize::try_from(info) == Ok(program) {
            return Ok(program);
        }
        Err(format!("{what} \"{name}\" has {info} cells in the P4Info, {program} in the BMv2 JSON"))
    }

    fn counters(&self) -> Check<BTreeMap<u32, Array<CounterId>>> {
        let counters = self.info.counters.iter().map(|counter| {
            let (id, name) = preamble(&counter.preamble, "counter")?;
            let program = self.program.counter_by_name(&name).ok_or_else(|| absent("counter", &name))?;
            let cells = self.program.counter(program).map_or(0, |info| info.size);
            let size = self.size("counter", &name, counter.size, cells)?;
            Ok((id, Array { name, program, size }))
        });
        pairs(counters.collect(), |array| array.name.clone())
    }

    fn meters(&self) -> Check<BTreeMap<u32, Meter>> {
        use config::meter_spec::Unit;
        let meters = self.info.meters.iter().map(|meter| {
            let (id, name) = preamble(&meter.preamble, "meter")?;
            let program = self.program.meter_by_name(&name).ok_or_else(|| absent("meter", &name))?;
            let info = self.program.meter(program);
            let size = self.size("meter", &name, meter.size, info.map_or(0, |info| info.size))?;
            let spec = meter.spec.unwrap_or_default();
            let unit = match spec.unit() {
                Unit::Packets => Some(MeterUnit::Packets),
                Unit::Bytes => Some(MeterUnit::Bytes),
                Unit::Unspecified => None,
            };
            if info.is_some_and(|info| unit.is_some_and(|unit| unit != info.unit)) {
                return Err(format!("meter \"{name}\" counts {} in the P4Info, not so in the BMv2 JSON", spec.unit().as_str_name()));
            }
            Ok((id, Meter { array: Array { name, program, size }, kind: spec.r#type() }))
        });
        pairs(meters.collect(), |meter| meter.array.name.clone())
    }

    fn registers(&self) -> Check<BTreeMap<u32, Register>> {
        let registers = self.info.registers.iter().map(|register| {
            let (id, name) = preamble(&register.preamble, "register")?;
            let program = self.program.register_by_name(&name).ok_or_else(|| absent("register", &name))?;
            let info = self.program.register(program);
            let size = self.size("register", &name, i64::from(register.size), info.map_or(0, |info| info.size))?;
            let data = self.data("register", &name, register.type_spec.as_ref(), &[info.map_or(0, |info| info.width)])?;
            Ok((id, Register { array: Array { name, program, size }, data }))
        });
        pairs(registers.collect(), |register| register.array.name.clone())
    }

    /// Resolves a type and checks the widths of its leaves.
    fn data(&self, what: &str, name: &str, spec: Option<&config::P4DataTypeSpec>, widths: &[u32]) -> Check<DataType> {
        let at = |text: String| format!("{what} \"{name}\": {text}");
        let spec = spec.ok_or_else(|| at("there is no type_spec".to_string()))?;
        let mut data = DataType::resolve(spec, self.types).map_err(at)?;
        data.set_translated_widths(&mut widths.iter().copied());
        let mut own = Vec::new();
        data.widths(&mut own);
        if own != widths {
            return Err(at(format!("its members are {own:?} bits wide in the P4Info, {widths:?} in the BMv2 JSON")));
        }
        Ok(data)
    }

    fn digests(&self) -> Check<BTreeMap<u32, Digest>> {
        let digests = self.info.digests.iter().map(|digest| {
            let (id, name) = preamble(&digest.preamble, "digest")?;
            let program = self.program.digest_by_name(&name).ok_or_else(|| absent("digest", &name))?;
            let widths = self.program.digest(program).map(|info| info.widths.clone()).unwrap_or_default();
            let data = self.data("digest", &name, digest.type_spec.as_ref(), &widths)?;
            Ok(Digest { id, name, program, data })
        });
        index(digests.collect(), |digest| (digest.id, digest.name.clone()))
    }

    fn value_sets(&self) -> Check<BTreeMap<u32, ValueSet>> {
        let sets = self.info.value_sets.iter().map(|set| {
            let (id, name) = preamble(&set.preamble, "value set")?;
            let program = self.program.value_set_by_name(&name).ok_or_else(|| absent("value set", &name))?;
            let fields = set.r#match.iter().enumerate().map(|(position, field)| {
                let here = |text: String| format!("value set \"{name}\": field \"{}\": {text}", field.name);
                let kind = match_type(field).map_err(here)?;
                let scalar = self.scalar(field.bitwidth, field.type_name.as_ref(), None).map_err(here)?;
                Ok(Field { id: field.id, name: field.name.clone(), kind, position, scalar, validity: false })
            });
            let fields = fields.collect::<Check<Vec<_>>>()?;
            let width: u32 = fields.iter().map(|field| field.scalar.width).sum();
            let expected = self.program.value_set(program).map_or(0, |info| info.width);
            if width != expected {
                return Err(format!("value set \"{name}\" is {width} bits wide in the P4Info, {expected} in the BMv2 JSON"));
            }
            Ok(ValueSet { id, program, fields, size: usize::try_from(set.size).unwrap_or(0), name })
        });
        index(sets.collect(), |set| (set.id, set.name.clone()))
    }

    fn packet_header(&self, wanted: &str) -> Check<Vec<PacketField>> {
        let header = self
            .info
            .controller_packet_metadata
            .iter()
            .find(|header| header.preamble.as_ref().is_some_and(|preamble| preamble.name == wanted));
        let Some(header) = header else { return Ok(Vec::new()) };
        header
            .metadata
            .iter()
            .map(|field| {
                let scalar = self
                    .scalar(field.bitwidth, field.type_name.as_ref(), None)
                    .map_err(|text| format!("controller header \"{wanted}\": field \"{}\": {text}", field.name))?;
                Ok(PacketField { id: field.id, name: field.name.clone(), scalar })
            })
            .collect()
    }
}

fn match_type(field: &config::MatchField) -> Check<MatchType> {
    use config::match_field::Match;
    match &field.r#match {
        Some(Match::MatchType(kind)) => match MatchType::try_from(*kind) {
            Ok(kind) if kind != MatchType::Unspecified => Ok(kind),
            _ => Err(format!("match_type {kind} is unknown")),
        },
        Some(Match::OtherMatchType(other)) => Err(format!("match type \"{other}\" is not supported")),
        None => Err("it has no match type".to_string()),
    }
}

fn pairs<T>(items: Check<Vec<(u32, T)>>, name: impl Fn(&T) -> String) -> Check<BTreeMap<u32, T>> {
    let items = index(items, |(id, item)| (*id, name(item)))?;
    Ok(items.into_iter().map(|(id, (_, item))| (id, item)).collect())
}
