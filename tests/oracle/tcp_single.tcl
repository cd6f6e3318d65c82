# One persistent flow over a drop-tail bottleneck. Prints one line "name value ..." of results, then the instants of drops.
source [file join [file dirname [info script]] tcp_common.tcl]
options {flavour reno rate_bps 10000000 rtt_ms 100 buffer_packets 20 seconds 100 delayed_ack 0 min_rto_ms 200 packet_bytes 1000 tick_ms 10}
# 40 B of header come on top.
Agent/TCP set packetSize_ [expr {$opt(packet_bytes) - 40}]
Agent/TCP set tcpTick_ [expr {$opt(tick_ms) / 1000.0}]
Agent/TCP set minrto_ [expr {$opt(min_rto_ms) / 1000.0}]
Agent/TCP/Linux set minrto_ [expr {$opt(min_rto_ms) / 1000.0}]

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $opt(rate_bps) [expr {$opt(rtt_ms) / 2.0}]ms DropTail
# limit_ counts the packet in service: B waiting packets are limit_ B + 1
$ns queue-limit $left $right [expr {$opt(buffer_packets) + 1}]
$ns queue-limit $right $left 10000
watch_bottleneck $ns $left $right

foreach {tcp sink ftp} [make_flow $ns $left $right $opt(flavour) 1 $opt(delayed_ack)] {}
$ns at 0.0 "$ftp start"
$ns at $opt(seconds) finish

proc finish {} {
    global tcp sink opt
    puts [concat [list received_bytes [$sink set bytes_] loss_events [$tcp set [expr {$opt(flavour) == "cubic" ? "ncwndcuts_" : "ncwndcuts1_"}]] \
        timeouts [$tcp set nrexmit_] retransmitted [$tcp set nrexmitpack_]] [bottleneck_results $opt(seconds)]]
    flush stdout
    exit 0
}
$ns run
