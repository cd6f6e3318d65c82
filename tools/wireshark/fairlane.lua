-- Wireshark dissector of Fairlane's own headers: stamps of data packets, acknowledgements, reports, ALSF.
--
-- Made from hosts/wire/formats.toml and tools/wireshark/fairlane.lua.in by `python tools/wire_formats.py`: change those, not this file.
--
--   wireshark -X lua_script:tools/wireshark/fairlane.lua capture.pcap
--   tshark -X lua_script:tools/wireshark/fairlane.lua -r capture.pcap -Y fairlane.ack -T fields -e fairlane.ack.sequence
--
-- Packets are known by what they hold, on any port: both ends of a flow use one port P for data, acknowledgements and reports, P even,
-- and P + 1 for RTCP.

local formats = {}
formats.stamp = { title = "Data stamp", bytes = 28, least = 16,
  { name = "sent_ns", at = 0, bits = 64, meaning = "the sender's clock when the packet was sent; a monotonic clock with an arbitrary zero", unit = "ns" },
  { name = "sequence", at = 64, bits = 64, meaning = "number of earlier data packets of this flow (or this layer): an extended sequence number from 0" },
  { name = "rtt_us", at = 128, bits = 32, meaning = "the sender's round-trip time [RFC 5348 sec 3.2.1]; 0 = not known", unit = "us" },
  { name = "produced_ns", at = 160, bits = 64, meaning = "in flows with an application's frames: production time of the frame, on the sender's clock; 0 = no application", unit = "ns" },
}
formats.rate = { title = "Rate header", bytes = 16, least = 16,
  { name = "profile", at = 0, bits = 16, meaning = "`RC`", value = 21059 },
  { name = "length", at = 16, bits = 16, meaning = "words that follow", value = 3 },
  { name = "rate_bps", at = 32, bits = 64, meaning = "the smallest rate of the switches so far, of whole frames; all bits 1 from the sender: no switch has set one", unit = "bit/s" },
  { name = "rtt_us", at = 96, bits = 32, meaning = "the sender's smoothed round-trip time; 0 = not known", unit = "us" },
}
formats.congestion = { title = "Congestion header", bytes = 20, least = 20,
  { name = "profile", at = 0, bits = 16, meaning = "`XC`", value = 22595 },
  { name = "length", at = 16, bits = 16, meaning = "words that follow", value = 4 },
  { name = "change_bps", at = 32, bits = 64, meaning = "2^63 plus the smallest change of the flow's rate of the switches so far, of whole frames; all bits 1 from the sender: no switch has set one", unit = "bit/s" },
  { name = "rtt_us", at = 96, bits = 32, meaning = "the sender's smoothed round-trip time; 0 = not known", unit = "us" },
  { name = "interval_us", at = 128, bits = 32, meaning = "time between the sender's packets: the round trip over the packets of its window", unit = "us" },
}
formats.ack = { title = "Acknowledgement", bytes = 28, least = 12,
  { name = "version", at = 0, bits = 4, meaning = "of this header", value = 1 },
  { name = "type", at = 4, bits = 4, meaning = "an acknowledgement", value = 1 },
  { name = "flags", at = 8, bits = 6, meaning = "no flag is defined" },
  { name = "ecn", at = 14, bits = 2, meaning = "ECN codepoint of the packet as it arrived [RFC 3168 sec 5]: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE" },
  { name = "sequence", at = 16, bits = 48, meaning = "the packet acknowledged: `sequence` of its stamp" },
  { name = "history", at = 64, bits = 32, meaning = "bit k (0 = least significant): packet `sequence` - 1 - k has arrived" },
  { name = "arrived_ns", at = 96, bits = 64, meaning = "the receiver's clock when the packet arrived; a monotonic clock with an arbitrary zero", unit = "ns" },
  { name = "rate_bps", at = 160, bits = 64, meaning = "`rate_bps` of the packet's rate header, or `change_bps` of its congestion header, as it arrived; of another header of the flow's own, the first bytes that come back", unit = "bit/s" },
}
formats.report = { title = "Report", bytes = 44, least = 44,
  { name = "version", at = 0, bits = 4, meaning = "of this header", value = 1 },
  { name = "type", at = 4, bits = 4, meaning = "a report", value = 2 },
  { name = "flags", at = 8, bits = 8, meaning = "fields that are present", flags = { { bit = 0, name = "has_loss_event_rate", meaning = "`loss_event_rate` holds a value; otherwise it is 0 and has no meaning" } } },
  { name = "highest_sequence", at = 16, bits = 48, meaning = "highest RTP sequence number received, extended: it does not wrap" },
  { name = "echo_ns", at = 64, bits = 64, meaning = "`sent_ns` of the newest data packet", unit = "ns" },
  { name = "delay_us", at = 128, bits = 32, meaning = "from the arrival of this packet to the report", unit = "us" },
  { name = "receive_rate_bps", at = 160, bits = 64, meaning = "bits of IP datagrams that arrived since the previous report, divided by the time since then: X_recv [RFC 5348 sec 3.2.2]", unit = "bit/s" },
  { name = "loss_event_rate", at = 224, bits = 32, meaning = "p [RFC 5348 sec 3.2.2]: in units of 1e-9", unit = "1e-9" },
  { name = "expected_packets", at = 256, bits = 32, meaning = "packets expected since the previous report" },
  { name = "lost_packets", at = 288, bits = 32, meaning = "expected packets that were lost; the loss fraction is lost / expected" },
  { name = "reporter", at = 320, bits = 32, meaning = "SSRC of the receiver" },
}
formats.alsf = { title = "ALSF", bytes = 12, least = 12,
  { name = "desired_rate_bps", at = 0, bits = 64, meaning = "R_d: the smallest fair rate of the path so far", unit = "bit/s" },
  { name = "utilisation", at = 64, bits = 32, meaning = "U of the router that set R_d: bits sent and bits that RED dropped, in parts per million of its link's rate; above 1,000,000 on an overloaded link", unit = "1e-6" },
}
formats.alsf_layer = { title = "ALSF layer", bytes = 12, least = 12,
  { name = "address", at = 0, bits = 32, meaning = "IPv4 group address" },
  { name = "rate_bps", at = 32, bits = 64, meaning = "the layer's rate", unit = "bit/s" },
}

local proto = Proto("fairlane", "Fairlane")
local fields = {} -- by format, then by name
local flags = {}
local bad_value = ProtoExpert.new("fairlane.bad_value", "A field has another value than its format says", expert.group.MALFORMED, expert.severity.ERROR)
local bad_length = ProtoExpert.new("fairlane.bad_length", "Bytes that are no whole layer follow", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { bad_value, bad_length }

-- Wireshark registers what `proto.fields` holds when it is assigned as a whole.
local all = {}
for name, form in pairs(formats) do
  fields[name], flags[name] = {}, {}
  fields[name][1] = ProtoField.none("fairlane." .. name, form.title)
  table.insert(all, fields[name][1])
  for _, field in ipairs(form) do
    local path = "fairlane." .. name .. "." .. field.name
    local made
    if field.name == "address" then
      made = ProtoField.ipv4(path, field.name, field.meaning)
    elseif field.name == "history" or field.name == "reporter" or field.flags then
      made = ProtoField.uint32(path, field.name, base.HEX, nil, nil, field.meaning)
    elseif field.bits > 32 then
      made = ProtoField.uint64(path, field.name, base.DEC, nil, nil, field.meaning)
    else
      made = ProtoField.uint32(path, field.name, base.DEC, nil, nil, field.meaning)
    end
    fields[name][field.name] = made
    table.insert(all, made)
    for _, flag in ipairs(field.flags or {}) do
      local bit = ProtoField.bool(path .. "." .. flag.name, flag.name, field.bits, nil, 2 ^ flag.bit, flag.meaning)
      flags[name][flag.name] = bit
      table.insert(all, bit)
    end
  end
end
proto.fields = all

-- Shows a format that starts at the range's first byte, or so many bits before it; how many bytes of the range it took.
local function show(name, range, tree, before)
  before = before or 0
  local form = formats[name]
  local size = form.least - before / 8
  for _, field in ipairs(form) do -- optional fields, as far as there are bytes
    local past = (field.at + field.bits - before) / 8
    if past > size and past <= range:len() then size = past end
  end
  local node = tree:add(fields[name][1], range(0, size))
  node:set_text(form.title)
  for _, field in ipairs(form) do
    local at = field.at - before
    if at >= 0 and at + field.bits <= 8 * size then
      local first, last = math.floor(at / 8), math.floor((at + field.bits - 1) / 8)
      local bytes = range(first, last - first + 1)
      local item
      if at % 8 == 0 and field.bits % 8 == 0 then
        item = node:add(fields[name][field.name], bytes)
      else
        item = node:add(fields[name][field.name], bytes, bytes:bitfield(at % 8, field.bits))
      end
      if field.unit then item:append_text(" " .. field.unit) end
      if field.value and bytes:bitfield(at % 8, field.bits) ~= field.value then item:add_proto_expert_info(bad_value) end
      for _, flag in ipairs(field.flags or {}) do item:add(flags[name][flag.name], bytes) end
    end
  end
  return size
end

local function fixed(name, field_name)
  for _, field in ipairs(formats[name]) do
    if field.name == field_name then return field.value end
  end
end

-- The first byte of an acknowledgement or report: version and type.
local function opening(name)
  return 16 * fixed(name, "version") + fixed(name, "type")
end

-- Whether a payload of so many bytes is an acknowledgement or a report: an acknowledgement may end before any of its optional fields.
local function whole(name, size)
  if size == formats[name].least then return true end
  for _, field in ipairs(formats[name]) do
    if size > formats[name].least and 8 * size == field.at + field.bits then return true end
  end
  return false
end

local rtp = Dissector.get("rtp")
local rtcp = Dissector.get("rtcp")
local payload_type = 96

function proto.dissector(buffer, pinfo, tree)
  local range = buffer()
  local node = tree:add(proto, range)
  local name = whole("ack", buffer:len()) and "ack" or "report"
  pinfo.cols.protocol = "Fairlane"
  show(name, range, node)
  if name == "ack" then
    pinfo.cols.info = "Ack " .. tostring(buffer(2, 6):uint64())
  else
    pinfo.cols.info = "Report, highest " .. tostring(buffer(2, 6):uint64())
  end
  return buffer:len()
end

-- The stamp in the payload of data.
local stamp = Proto("fairlane_stamp", "Fairlane data")
function stamp.dissector(buffer, pinfo, tree)
  if buffer:len() < formats.stamp.least then return 0 end
  show("stamp", buffer(), tree:add(proto, buffer()))
  return buffer:len()
end
DissectorTable.get("rtp.pt"):add(payload_type, stamp)

-- What routers write into: Wireshark hands a header extension over behind its first 32 bits, profile and length.
for _, name in ipairs({ "rate", "congestion" }) do
  local extension = Proto("fairlane_" .. name, "Fairlane " .. name .. " header")
  function extension.dissector(buffer, pinfo, tree)
    if buffer:len() + 4 < formats[name].least then return 0 end
    return show(name, buffer(), tree:add(proto, buffer()), 32)
  end
  DissectorTable.get("rtp.hdr_ext"):add(fixed(name, "profile"), extension)
end

-- An APP packet named ALSF: Wireshark hands it over from its header on.
local app_header = 12
local alsf = Proto("fairlane_alsf", "ALSF")
function alsf.dissector(buffer, pinfo, tree)
  if buffer:len() < app_header + formats.alsf.bytes then return 0 end
  local range = buffer(app_header)
  local node = tree:add(proto, range)
  local at = show("alsf", range, node)
  while range:len() - at >= formats.alsf_layer.bytes do
    at = at + show("alsf_layer", range(at), node)
  end
  if at < range:len() then node:add_proto_expert_info(bad_length) end
  return buffer:len()
end
DissectorTable.get("rtcp.app.name"):add("ALSF", alsf)

-- What a datagram is, by ports and first bytes.
local function heuristic(buffer, pinfo, tree)
  local size, port = buffer:len(), pinfo.src_port
  if size < formats.ack.least or port ~= pinfo.dst_port then return false end
  local first = buffer(0, 1):uint()
  if port % 2 == 0 then
    if (whole("ack", size) and first == opening("ack")) or (whole("report", size) and first == opening("report")) then
      proto.dissector(buffer, pinfo, tree)
      return true
    end
    -- Version 2, with a header extension (0x90) or without one.
    if (first == 0x80 or first == 0x90) and buffer(1, 1):uint() % 128 == payload_type and size >= 12 + formats.stamp.least then
      rtp:call(buffer, pinfo, tree)
      return true
    end
  elseif first >= 0x80 and first < 0xc0 then
    local kind = buffer(1, 1):uint()
    if kind == 200 or kind == 201 or kind == 205 then -- SR, RR, feedback of reduced size (RFC 5506)
      rtcp:call(buffer, pinfo, tree)
      return true
    end
  end
  return false
end
proto:register_heuristic("udp", heuristic)
