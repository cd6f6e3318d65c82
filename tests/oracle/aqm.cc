// Long TCP flows (New Reno with SACK, DCTCP or BBR, some of them perhaps CUBIC) over one link whose queue ns-3 manages. Prints a JSON object of results.
//
// run_aqm.py and run_bbr.py compile and run it, with Debian's libns3-dev.

#include <cstdio>
#include <iostream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

// Of packets that left the queue and the device in the window.
double delay_s = 0;
uint64_t dequeued = 0, received_bytes = 0, beside_bytes = 0, retransmitted = 0;
// Of each sender, the highest sequence number sent.
std::vector<SequenceNumber32> highest;
// Packet seconds of the queue, from the window's beginning on.
double integral = 0;
Time since;
uint32_t waiting = 0;
bool counts = false;

void add() {
    if (counts) {
        integral += waiting * (Simulator::Now() - since).GetSeconds();
    }
    since = Simulator::Now();
}

void in_queue(uint32_t, uint32_t now) {
    add();
    waiting = now;
}

void sojourn(Time delay) {
    if (counts) {
        delay_s += delay.GetSeconds();
        dequeued++;
    }
}

void received(Ptr<const Packet> packet, const Address&) {
    if (counts) {
        received_bytes += packet->GetSize();
    }
}

void received_beside(Ptr<const Packet> packet, const Address&) {
    if (counts) {
        beside_bytes += packet->GetSize();
    }
}

// A packet leaves the host of sender `i`.
void sent(uint32_t i, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
    Ptr<Packet> copy = packet->Copy();
    Ipv4Header ip;
    TcpHeader tcp;
    copy->RemoveHeader(ip);
    copy->RemoveHeader(tcp);
    if (copy->GetSize() == 0) {
        return;
    }
    SequenceNumber32 first = tcp.GetSequenceNumber();
    if (first < highest[i]) {
        retransmitted += counts;
    } else {
        highest[i] = first + SequenceNumber32(copy->GetSize());
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string queue = "CoDel";
    double rate_bps = 10e6, rtt_ms = 40, seconds = 200, from = 100, target_ms = 5, interval_ms = 100;
    uint32_t flows = 4, beside = 0, buffer = 200, packet_bytes = 1000, initial_window = 2, seed = 1;
    double threshold = 20, maximum = 60, other_bps = 0, period_s = 20, more_rtt_ms = 0;
    std::string tcp = "sack";
    bool ecn = false, timestamps = true;
    CommandLine options(__FILE__);
    options.AddValue("queue", "CoDel, PIE, RED, Step or FIFO", queue);
    options.AddValue("threshold", "of the step, or RED's minimum, in packets", threshold);
    options.AddValue("maximum", "RED's, in packets", maximum);
    options.AddValue("other_bps", "of the bottleneck, every other period; 0: always rate_bps", other_bps);
    options.AddValue("period_s", "of those", period_s);
    options.AddValue("more_rtt_ms", "of every second flow", more_rtt_ms);
    options.AddValue("tcp", "sack, dctcp, bbr or cubic", tcp);
    options.AddValue("beside", "CUBIC flows beside those", beside);
    options.AddValue("timestamps", "RFC 7323", timestamps);
    options.AddValue("initial_window", "segments", initial_window);
    options.AddValue("rate_bps", "of the bottleneck", rate_bps);
    options.AddValue("rtt_ms", "without queues", rtt_ms);
    options.AddValue("seconds", "length", seconds);
    options.AddValue("from", "second from which on is measured", from);
    options.AddValue("target_ms", "of the queue", target_ms);
    options.AddValue("interval_ms", "of CoDel", interval_ms);
    options.AddValue("flows", "how many", flows);
    options.AddValue("buffer", "packets", buffer);
    options.AddValue("packet_bytes", "of a full segment on the link", packet_bytes);
    options.AddValue("seed", "of the starts", seed);
    options.AddValue("ecn", "mark instead of drop", ecn);
    options.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);

    // On the link: 2 bytes of PPP, 20 of IP, 20 of TCP, 12 of timestamps.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(packet_bytes - (timestamps ? 54 : 42)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(timestamps));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initial_window));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(tcp == "dctcp"   ? TcpDctcp::GetTypeId()
                                                                           : tcp == "bbr"   ? TcpBbr::GetTypeId()
                                                                           : tcp == "cubic" ? TcpCubic::GetTypeId()
                                                                                            : TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));

    // Its allowance for aggregated ACKs would count octets as packets and whole seconds: with 0, one ACK at most.
    Config::SetDefault("ns3::TcpBbr::AckEpochAckedResetThresh", UintegerValue(0));

    NodeContainer left, right, routers;
    routers.Create(2);
    left.Create(flows + beside);
    right.Create(flows + beside);
    InternetStackHelper().InstallAll();
    highest.resize(flows + beside);
    for (uint32_t i = 0; i < flows + beside; i++) {
        left.Get(i)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Tx", MakeBoundCallback(&sent, i));
        if (i >= flows) {
            left.Get(i)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(TcpCubic::GetTypeId()));
        }
    }

    PointToPointHelper trunk, access;
    trunk.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate_bps))));
    trunk.SetChannelAttribute("Delay", TimeValue(Seconds(rtt_ms / 2e3)));
    trunk.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));

    NetDeviceContainer link = trunk.Install(routers);
    TrafficControlHelper managed;
    std::string size = std::to_string(buffer) + "p";
    if (queue == "CoDel") {
        managed.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue(size), "MinBytes", UintegerValue(packet_bytes), "Target",
                                 TimeValue(MicroSeconds(uint64_t(target_ms * 1e3))), "Interval", TimeValue(MicroSeconds(uint64_t(interval_ms * 1e3))),
                                 "UseEcn", BooleanValue(ecn));
    } else if (queue == "Step") {
        // RED of the momentary queue, whose two thresholds are one. It marks where it would have to drop.
        managed.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(size), "QW", DoubleValue(1), "MinTh", DoubleValue(threshold - 0.5), "MaxTh",
                                 DoubleValue(threshold), "Gentle", BooleanValue(false), "UseEcn", BooleanValue(true), "UseHardDrop",
                                 BooleanValue(false), "MeanPktSize", UintegerValue(packet_bytes));
    } else if (queue == "RED") {
        // As Floyd and Jacobson wrote it: without the wait between two drops that ns-2 added, and all packets are dropped from the maximum on.
        managed.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(size), "QW", DoubleValue(0.002), "MinTh", DoubleValue(threshold), "MaxTh",
                                 DoubleValue(maximum), "LInterm", DoubleValue(10), "Gentle", BooleanValue(false), "Wait", BooleanValue(false), "UseEcn",
                                 BooleanValue(ecn), "UseHardDrop", BooleanValue(true), "MeanPktSize", UintegerValue(packet_bytes), "LinkBandwidth",
                                 DataRateValue(DataRate(uint64_t(rate_bps))));
    } else if (queue == "PIE") {
        managed.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue(size), "UseEcn", BooleanValue(ecn));
    } else {
        managed.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(size));
    }
    Ptr<QueueDisc> disc = managed.Install(link.Get(0)).Get(0);
    disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&in_queue));
    disc->TraceConnectWithoutContext("SojournTime", MakeCallback(&sojourn));

    // The device has a queue of its own, where a packet would wait that the managed queue no longer sees: it asks for one when the link is free.
    Ptr<NetDeviceQueue> ready = link.Get(0)->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0);
    link.Get(0)->TraceConnectWithoutContext("PhyTxBegin", Callback<void, Ptr<const Packet>>([ready](Ptr<const Packet>) { ready->Stop(); }));
    link.Get(0)->TraceConnectWithoutContext(
        "PhyTxEnd", Callback<void, Ptr<const Packet>>([ready](Ptr<const Packet>) { Simulator::ScheduleNow(&NetDeviceQueue::Wake, ready); }));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(link);
    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    for (uint32_t i = 0; i < flows + beside; i++) {
        addresses.NewNetwork();
        access.SetChannelAttribute("Delay", TimeValue(Seconds(i % 2 ? more_rtt_ms / 2e3 : 0)));
        addresses.Assign(access.Install(left.Get(i), routers.Get(0)));
        access.SetChannelAttribute("Delay", StringValue("0ms"));
        addresses.NewNetwork();
        Ipv4InterfaceContainer end = addresses.Assign(access.Install(routers.Get(1), right.Get(i)));
        ApplicationContainer receiver = sink.Install(right.Get(i));
        receiver.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(i < flows ? &received : &received_beside));
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(end.GetAddress(1), 5000));
        sender.Install(left.Get(i)).Start(Seconds(starts->GetValue(0.0, 1.0)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    for (uint32_t n = 1; other_bps > 0 && n * period_s < seconds; n++) {
        DataRate rate(uint64_t(n % 2 ? other_bps : rate_bps));
        Simulator::Schedule(Seconds(n * period_s), &PointToPointNetDevice::SetDataRate, DynamicCast<PointToPointNetDevice>(link.Get(0)), rate);
    }
    QueueDisc::Stats before;
    Simulator::Schedule(Seconds(from), [&] {
        add();
        counts = true;
        before = disc->GetStats();
    });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    add();
    const QueueDisc::Stats& after = disc->GetStats();
    double window = seconds - from;
    std::printf("{\"received_bytes\": %llu, \"beside_bytes\": %llu, \"retransmitted\": %llu, \"drops\": %u, \"marks\": %u, \"mean_queue\": %.4f, \"mean_delay_s\": %.6f}\n",
                (unsigned long long)received_bytes, (unsigned long long)beside_bytes, (unsigned long long)retransmitted, after.nTotalDroppedPackets - before.nTotalDroppedPackets,
                after.nTotalMarkedPackets - before.nTotalMarkedPackets, integral / window, delay_s / double(dequeued));
    Simulator::Destroy();
    return 0;
}
