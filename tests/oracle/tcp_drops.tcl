# One persistent flow over a link that drops the packets named by number (1 is the first that comes to it), as in Fall and Floyd 1996,
# section "Simulations". Prints one line "name value ..." of results.
source [file join [file dirname [info script]] tcp_common.tcl]
options {flavour sack rate_bps 800000 rtt_ms 100 window_packets 20 drops {} seconds 10 singledup 0 tick_ms 100}
Agent/TCP set window_ $opt(window_packets)
Agent/TCP set windowInit_ 1
Agent/TCP set singledup_ $opt(singledup)
Agent/TCP set tcpTick_ [expr {$opt(tick_ms) / 1000.0}]
Agent/TCP set syn_ false
# the window grows with the first ACK, as before 2001
Agent/TCP set delay_growth_ false

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $opt(rate_bps) [expr {$opt(rtt_ms) / 2.0}]ms DropTail
$ns queue-limit $left $right 10000
$ns queue-limit $right $left 10000
set losses [new ErrorModel/List]
$losses unit pkt
# ns-2 counts from 0
$losses droplist [lmap number [split $opt(drops) ,] {expr {$number - 1}}]
$losses drop-target [new Agent/Null]
$ns lossmodel $losses $left $right

foreach {tcp sink ftp} [make_flow $ns $left $right $opt(flavour) 1 0] {}
$ns at 0.0 "$ftp start"
$ns at $opt(seconds) finish

proc finish {} {
    global tcp sink
    puts [list received_bytes [$sink set bytes_] loss_events [$tcp set ncwndcuts1_] timeouts [$tcp set nrexmit_] retransmitted [$tcp set nrexmitpack_]]
    flush stdout
    exit 0
}
$ns run
