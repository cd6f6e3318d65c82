# Several persistent flows over one RED bottleneck. Prints one line "name value ..." of results, then the instants of drops.
source [file join [file dirname [info script]] tcp_common.tcl]
options {flavour sack rate_bps 10000000 rtt_ms 100 buffer_packets 200 seconds 100 flows 10 seed 1
    min_threshold 15 max_threshold 45 max_p 0.1 weight 0.002 delayed_ack 0 wait 1 jitter 0 ecn 0}

# The Floyd and Jacobson 1993 RED: packets, no gentle slope, forced drops above the maximum threshold.
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ false
Queue/RED set use_mark_p_ false
# 1: drops are 1/p to 2/p packets apart (ns-2's default); 0: up to 1/p, as in the paper
Queue/RED set wait_ $opt(wait)
Queue/RED set adaptive_ 0
Queue/RED set cautious_ 0
# RFC 3168: a packet that RED picks below the maximum threshold is marked
Queue/RED set setbit_ $opt(ecn)
Agent/TCP set ecn_ $opt(ecn)
Queue/RED set drop_tail_ true
Queue/RED set mean_pktsize_ 1000
Queue/RED set thresh_ $opt(min_threshold)
Queue/RED set maxthresh_ $opt(max_threshold)
Queue/RED set linterm_ [expr {1.0 / $opt(max_p)}]
Queue/RED set q_weight_ $opt(weight)

ns-random $opt(seed)
set starts [new RandomVariable/Uniform]
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right $opt(rate_bps) [expr {$opt(rtt_ms) / 2.0}]ms RED
$ns simplex-link $right $left $opt(rate_bps) [expr {$opt(rtt_ms) / 2.0}]ms DropTail
# RED's limit_ does not count the packet in service
$ns queue-limit $left $right $opt(buffer_packets)
$ns queue-limit $right $left 10000
watch_bottleneck $ns $left $right

set sinks {}
set senders {}
for {set i 0} {$i < $opt(flows)} {incr i} {
    foreach {tcp sink ftp} [make_flow $ns $left $right $opt(flavour) $i $opt(delayed_ack)] {}
    lappend senders $tcp
    lappend sinks $sink
    # starts spread over the first second, not at equal distances, and moved at random by up to `jitter` seconds
    $ns at [expr {fmod($i * 0.618033988749895, 1.0) + $opt(jitter) * [$starts value]}] "$ftp start"
}
$ns at $opt(seconds) finish

proc finish {} {
    global senders sinks opt
    set bytes 0
    set events 0
    set timeouts 0
    set retransmitted 0
    foreach tcp $senders sink $sinks {
        incr bytes [$sink set bytes_]
        incr events [$tcp set [expr {$opt(flavour) == "cubic" ? "ncwndcuts_" : "ncwndcuts1_"}]]
        incr timeouts [$tcp set nrexmit_]
        incr retransmitted [$tcp set nrexmitpack_]
    }
    puts [concat [list received_bytes $bytes loss_events $events timeouts $timeouts retransmitted $retransmitted] \
        [bottleneck_results $opt(seconds)]]
    flush stdout
    exit 0
}
$ns run
