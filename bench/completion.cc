// Files over TCP in ns-3, through a network and at times that standard input describes. Prints a line for each file: its number, and when its last byte was acknowledged.
//
// bench/completion.py compiles and runs it, with Debian's libns3-dev. Lines of the input, all numbers whole:
//
//   nodes COUNT
//   link NODE NODE RATE_BPS DELAY_NS QUEUE_PACKETS
//   file START_NS BYTES COUNT NODE... COUNT NODE...      nodes on the way there, and on the way back
//
// A drop-tail queue at each end holds so many packets besides the one that the link is sending.

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

const uint16_t FIRST_PORT = 1024;

// Each file has a port of its own at both ends. Packets to the same host with the same port take the same way.
uint64_t key_of(Ipv4Address to, uint16_t port) {
    return uint64_t(to.Get()) << 16 | port;
}

Ipv4Address address_of(uint32_t node) {
    return Ipv4Address(0x0a000000 + node + 1);
}

// Sends a packet out of the interface that its file's way has.
class Ways : public Ipv4RoutingProtocol {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("Ways").SetParent<Ipv4RoutingProtocol>();
        return id;
    }

    void add(Ipv4Address to, uint16_t port, uint32_t interface) { m_interface[key_of(to, port)] = interface; }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& error) override {
        error = Socket::ERROR_NOTERROR;
        return route(header.GetDestination(), 1);
    }

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> from, UnicastForwardCallback forward, MulticastForwardCallback,
                    LocalDeliverCallback deliver, ErrorCallback) override {
        uint32_t interface = m_ipv4->GetInterfaceForDevice(from);
        if (m_ipv4->IsDestinationAddress(header.GetDestination(), interface)) {
            deliver(packet, header, interface);
            return true;
        }
        uint8_t ports[4];
        packet->CopyData(ports, sizeof ports);
        auto found = m_interface.find(key_of(header.GetDestination(), uint16_t(ports[2] << 8 | ports[3])));
        NS_ABORT_MSG_IF(found == m_interface.end(), "a packet without a way");
        forward(route(header.GetDestination(), found->second), packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    Ptr<Ipv4Route> route(Ipv4Address to, uint32_t interface) const {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetDestination(to);
        route->SetGateway(Ipv4Address::GetZero());
        route->SetSource(m_ipv4->GetNAddresses(1) ? m_ipv4->GetAddress(1, 0).GetLocal() : Ipv4Address::GetZero());
        route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
        return route;
    }

    Ptr<Ipv4> m_ipv4;
    std::unordered_map<uint64_t, uint32_t> m_interface;
};

struct File {
    uint64_t bytes = 0;
    Time start;
    uint32_t from = 0, to = 0;
    Ptr<Socket> sender, listener, receiver;
    SequenceNumber32 highest;
    uint64_t sent = 0, retransmitted = 0, timeouts = 0;
    Time complete;
};

std::vector<File> files;
NodeContainer nodes;

void sent(uint32_t number, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) {
        return;
    }
    File& file = files[number];
    SequenceNumber32 end = header.GetSequenceNumber() + SequenceNumber32(packet->GetSize());
    file.sent++;
    file.retransmitted += end <= file.highest;
    file.highest = std::max(file.highest, end);
}

void congestion(uint32_t number, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
    files[number].timeouts += now == TcpSocketState::CA_LOSS;
}

// FIN_WAIT_2: the FIN, which comes with the last byte, is acknowledged. Then the other end closes, too, so that both connections go away.
void state(uint32_t number, TcpSocket::TcpStates_t, TcpSocket::TcpStates_t now) {
    File& file = files[number];
    if (now != TcpSocket::FIN_WAIT_2) {
        return;
    }
    file.complete = Simulator::Now();
    file.listener->Close();
    Simulator::ScheduleNow([number] { files[number].receiver->Close(); });
}

void connected(uint32_t number, Ptr<Socket> socket) {
    socket->Send(Create<Packet>(uint32_t(files[number].bytes)));
    socket->Close();
}

void readable(Ptr<Socket> socket) {
    while (socket->Recv()) {
    }
}

void begin(uint32_t number) {
    File& file = files[number];
    uint16_t port = FIRST_PORT + number;
    file.listener = Socket::CreateSocket(nodes.Get(file.to), TcpSocketFactory::GetTypeId());
    file.listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    file.listener->Listen();
    file.listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), Callback<void, Ptr<Socket>, const Address&>([number](Ptr<Socket> socket, const Address&) {
                                         files[number].receiver = socket;
                                         socket->SetRecvCallback(MakeCallback(&readable));
                                     }));
    file.sender = Socket::CreateSocket(nodes.Get(file.from), TcpSocketFactory::GetTypeId());
    file.sender->TraceConnectWithoutContext("Tx", MakeBoundCallback(&sent, number));
    file.sender->TraceConnectWithoutContext("State", MakeBoundCallback(&state, number));
    file.sender->TraceConnectWithoutContext("CongState", MakeBoundCallback(&congestion, number));
    file.sender->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    file.sender->SetConnectCallback(MakeBoundCallback(&connected, number), MakeNullCallback<void, Ptr<Socket>>());
    file.sender->Connect(InetSocketAddress(address_of(file.to), port));
}

// Frames of ns-3's links have a header of 2 bytes, those of Ethernet 14: an IPv4 host ignores what follows the datagram.
void pad(Ptr<const Packet> packet) {
    ConstCast<Packet>(packet)->AddPaddingAtEnd(12);
}

// What the input describes; between two nodes there is one link at most.
class Description {
  public:
    void read(std::istream& input) {
        std::string line, word;
        while (std::getline(input, line)) {
            std::istringstream words(line);
            words >> word;
            if (word == "nodes") {
                read_nodes(words);
            } else if (word == "link") {
                read_link(words);
            } else if (word == "file") {
                read_file(words);
            }
            NS_ABORT_MSG_IF(!words, "cannot read: " << line);
        }
    }

  private:
    void read_nodes(std::istream& words) {
        uint32_t count = 0;
        words >> count;
        nodes.Create(count);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(nodes);
        for (uint32_t node = 0; node < count; node++) {
            m_ways.push_back(CreateObject<Ways>());
            nodes.Get(node)->GetObject<Ipv4>()->SetRoutingProtocol(m_ways.back());
        }
    }

    void read_link(std::istream& words) {
        uint32_t a, b;
        uint64_t rate_bps, delay_ns, queue;
        words >> a >> b >> rate_bps >> delay_ns >> queue;
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate_bps)));
        link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay_ns)));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(queue) + "p"));
        link.DisableFlowControl();
        NetDeviceContainer devices = link.Install(nodes.Get(a), nodes.Get(b));
        attach(a, b, devices.Get(0));
        attach(b, a, devices.Get(1));
    }

    void attach(uint32_t from, uint32_t to, Ptr<NetDevice> device) {
        Ptr<Ipv4> ipv4 = nodes.Get(from)->GetObject<Ipv4>();
        uint32_t interface = ipv4->AddInterface(device);
        if (interface == 1) {
            ipv4->AddAddress(interface, Ipv4InterfaceAddress(address_of(from), Ipv4Mask("255.255.255.255")));
        }
        ipv4->SetUp(interface);
        m_interface[{from, to}] = interface;
        device->TraceConnectWithoutContext("MacTx", MakeCallback(&pad));
    }

    void read_file(std::istream& words) {
        uint32_t number = files.size();
        NS_ABORT_MSG_IF(FIRST_PORT + number > 65535, "more files than ports");
        File file;
        int64_t start_ns = 0;
        words >> start_ns >> file.bytes;
        file.start = NanoSeconds(start_ns);
        std::vector<uint32_t> there = read_way(words, number), back = read_way(words, number);
        NS_ABORT_MSG_IF(there.size() < 3 || back.size() < 3, "a way has two hosts and a switch at least");
        file.from = there.front();
        file.to = there.back();
        files.push_back(file);
        Simulator::Schedule(file.start, &begin, number);
    }

    std::vector<uint32_t> read_way(std::istream& words, uint32_t number) {
        uint32_t count = 0;
        words >> count;
        std::vector<uint32_t> way(count);
        for (uint32_t& node : way) {
            words >> node;
        }
        for (uint32_t i = 0; i + 1 < count; i++) {
            m_ways[way[i]]->add(address_of(way.back()), FIRST_PORT + number, m_interface.at({way[i], way[i + 1]}));
        }
        return way;
    }

    std::vector<Ptr<Ways>> m_ways;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> m_interface;
};

}  // namespace

int main(int argc, char** argv) {
    std::string tcp = "sack";
    double min_rto_s = 1, initial_rto_s = 1, delayed_ack_s = 0.04, seconds = 1;
    uint32_t segment = 1460, initial_window = 10, max_window = 4 << 20, acks = 2;
    CommandLine options(__FILE__);
    options.AddValue("tcp", "sack or cubic", tcp);
    options.AddValue("segment", "payload of a full segment, bytes", segment);
    options.AddValue("initial_window", "segments", initial_window);
    options.AddValue("max_window", "bytes", max_window);
    options.AddValue("min_rto_s", "least retransmission timeout", min_rto_s);
    options.AddValue("initial_rto_s", "before a round trip is measured", initial_rto_s);
    options.AddValue("acks", "segments for an ACK", acks);
    options.AddValue("delayed_ack_s", "longest delay of an ACK", delayed_ack_s);
    options.AddValue("seconds", "length of the run", seconds);
    options.Parse(argc, argv);

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(acks));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(delayed_ack_s)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initial_window));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(initial_rto_s)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(20));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(max_window));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(initial_rto_s)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(min_rto_s)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.5));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    TypeId congestion_control = tcp == "cubic" ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(congestion_control));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));

    Description().read(std::cin);
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::printf("file,completion_ns,sent,retransmitted,timeouts\n");
    for (uint32_t number = 0; number < files.size(); number++) {
        const File& file = files[number];
        long long took = file.complete.IsZero() ? -1 : (file.complete - file.start).GetNanoSeconds();
        std::printf("%u,%lld,%llu,%llu,%llu\n", number, took, (unsigned long long)file.sent, (unsigned long long)file.retransmitted, (unsigned long long)file.timeouts);
    }
    Simulator::Destroy();
    return 0;
}
