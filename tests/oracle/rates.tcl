# Rate-based agents of ns-2 beside SACK over one drop-tail bottleneck, and what each flow got.
# Options come as "name value" pairs on the command line.
source [file join [file dirname [info script]] tcp_common.tcl]
options {agent rap adaptive 1 sacks 1 rate_bps 80000 delay_ms 20 access_bps 10000000 access_ms 3 buffer_packets 20
         packet_bytes 100 ack_bytes 40 seconds 120 from 30 seed 1 jitter_s 0.0005 rap_jitter 0.2 tcp_tick 0.1 fine 0}

ns-random $opt(seed)
set start_rng [new RNG]
$start_rng seed $opt(seed)
set ns [new Simulator]
# 40 B of header come on top of a TCP packet.
Agent/TCP set packetSize_ [expr {$opt(packet_bytes) - 40}]
Agent/TCP set window_ 1000
Agent/TCP set tcpTick_ $opt(tcp_tick)
Agent/TCP set syn_ false
# Up to so much is added to the time of each sending: without it drop-tail queues lock phases.
Agent/TCP set overhead_ $opt(jitter_s)
# It makes each gap longer, so that it costs RAP rate: a fifth of the others'.
Agent/RAP set overhead_ [expr {$opt(rap_jitter) * $opt(jitter_s)}]
Agent/RAP set packetSize_ $opt(packet_bytes)
Agent/RAP set useFineGrain_ $opt(fine)
Agent/TFRC set packetSize_ $opt(packet_bytes)
# packetSize_ is all of a packet; otherwise 32 B of header come on top.
Agent/TFRC set useHeaders_ false
Agent/TFRC set overhead_ 0.1
Agent/TFRCSink set packetSize_ $opt(ack_bytes)

set s1 [$ns node]
set s2 [$ns node]
$ns duplex-link $s1 $s2 $opt(rate_bps) $opt(delay_ms)ms DropTail
# ns-2 holds one packet less than the limit beside the one in service.
$ns queue-limit $s1 $s2 [expr {$opt(buffer_packets) + 1}]
$ns queue-limit $s2 $s1 10000
set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $s1 $s2] $monitor
set back [$ns monitor-queue $s2 $s1 ""]

proc ends {} {
    global ns s1 s2 opt
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $s1 $opt(access_bps) $opt(access_ms)ms DropTail
    $ns duplex-link $s2 $b $opt(access_bps) $opt(access_ms)ms DropTail
    foreach {x y} [list $a $s1 $s1 $a $s2 $b $b $s2] { $ns queue-limit $x $y 10000 }
    return [list $a $b]
}

# The first RAP agent of a process that gets an ACK starts otherwise than all later ones (a static variable): this one takes that part.
if {$opt(agent) eq "rap"} {
    set x [$ns node]
    set y [$ns node]
    $ns duplex-link $x $y 1Mb 1ms DropTail
    set first [new Agent/RAP]
    $ns attach-agent $x $first
    set sink [new Agent/RAP]
    $ns attach-agent $y $sink
    $ns connect $first $sink
    $ns at 0.0 "$first start"
    $ns at 2.5 "$first stop"
}

set agents {}
for {set i 0} {$i < $opt(adaptive) + $opt(sacks)} {incr i} {
    lassign [ends] a b
    set at [expr {3.0 + [$start_rng uniform 0.0 1.0]}]
    if {$i >= $opt(adaptive)} {
        lassign [make_flow $ns $a $b sack $i 0] tcp sink ftp
        $sink set packetSize_ $opt(ack_bytes)
        $ns at $at "$ftp start"
    } elseif {$opt(agent) eq "rap"} {
        set source [new Agent/RAP]
        set sink [new Agent/RAP]
        $source set fid_ $i
        $sink set fid_ $i
        $ns attach-agent $a $source
        $ns attach-agent $b $sink
        $ns connect $source $sink
        $ns at $at "$source start"
        lappend agents $source
    } else {
        set source [new Agent/TFRC]
        set sink [new Agent/TFRCSink]
        $source set fid_ $i
        $sink set fid_ $i
        $ns attach-agent $a $source
        $ns attach-agent $b $sink
        $ns connect $source $sink
        $ns at $at "$source start"
    }
}

# An SRTT that stays for 10 s is frozen: all packets time out, and none gives a sample.
set frozen 0
proc look {} {
    global agents ns last frozen
    foreach agent $agents {
        set srtt [$agent set srtt_]
        if {[info exists last($agent)] && $last($agent) == $srtt} { incr frozen }
        set last($agent) $srtt
    }
    $ns at [expr {[$ns now] + 10}] look
}
$ns at [expr {3 + $opt(from)}] look

proc bytes {} {
    global monitor
    set result {}
    foreach flow [$monitor flows] { lappend result [$flow set flowid_] [$flow set bdepartures_] }
    return $result
}
$ns at [expr {3 + $opt(from)}] {array set before [bytes]}
proc finish {} {
    global monitor before opt frozen back
    array set after [bytes]
    foreach fid [lsort -integer [array names after]] {
        set earlier [expr {[info exists before($fid)] ? $before($fid) : 0}]
        puts "flow $fid [expr {8 * ($after($fid) - $earlier) / double($opt(seconds) - $opt(from))}]"
    }
    puts "drops [$monitor set pdrops_] departures [$monitor set pdepartures_] back [$back set pdepartures_] frozen $frozen"
    exit 0
}
$ns at [expr {3 + $opt(seconds)}] finish
$ns run
