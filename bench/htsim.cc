// The scenario of virtual.py for csg-htsim: long TCP flows over one bottleneck whose full queue drops at random. Prints link traversals.
//   htsim FLOWS MBPS SECONDS
// htsim has no P4, no bytes of packets, no SACK (NewReno) and no RED; its receivers acknowledge each packet.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "randomqueue.h"
#include "tcp.h"

static uint64_t traversals = 0;

// A link's delay, which counts its packets.
class Link : public Pipe {
public:
    using Pipe::Pipe;
    void receivePacket(Packet &packet) override {
        ++traversals;
        Pipe::receivePacket(packet);
    }
};

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "htsim FLOWS MBPS SECONDS\n");
        return 2;
    }
    const int flows = std::atoi(argv[1]);
    const double mbps = std::atof(argv[2]);
    std::cout.setstate(std::ios_base::failbit); // its sources write as they are made
    srand(1);
    EventList &events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(std::atof(argv[3])));
    Packet::set_packet_size(1000);
    const linkspeed_bps trunk = speedFromMbps(mbps), access = speedFromMbps(10 * mbps);
    const int buffer = mbps * 1e6 * 0.1 / 8000 < 20 ? 20 : int(mbps * 1e6 * 0.1 / 8000 + 0.5);
    RandomQueue there(trunk, memFromPkt(buffer), events, nullptr, memFromPkt(buffer / 4));
    Queue back(trunk, memFromPkt(buffer), events, nullptr);
    Link trunk_there(timeFromMs(10), events), trunk_back(timeFromMs(10), events);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    for (int i = 0; i < flows; ++i) {
        auto *source = new TcpSrc(nullptr, nullptr, events);
        auto *sink = new TcpSink();
        source->setName("tcp" + std::to_string(i));
        timers.registerTcp(*source);
        auto *out = new route_t(), *in = new route_t();
        const auto hop = [&](route_t *route) {
            route->push_back(new Queue(access, memFromPkt(1000), events, nullptr));
            route->push_back(new Link(timeFromMs(1), events));
        };
        hop(out);
        out->push_back(&there);
        out->push_back(&trunk_there);
        hop(out);
        out->push_back(sink);
        hop(in);
        in->push_back(&back);
        in->push_back(&trunk_back);
        hop(in);
        in->push_back(source);
        source->connect(*out, *in, *sink, timeFromMs(i));
    }
    while (events.doNextEvent()) {
    }
    std::printf("%llu\n", static_cast<unsigned long long>(traversals));
}
