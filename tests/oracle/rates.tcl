# Rate-based agents of ns-2 beside SACK over one drop-tail bottleneck, and what each flow got.
# Options come as "name value" pairs on the command line.
source [file join [file dirname [info script]] tcp_common.tcl]
options {agent rap adaptive 1 sacks 1 rate_bps 80000 delay_ms 20 access_bps 10000000 access_ms 3 buffer_packets 20
         packet_bytes 100 ack_bytes 40 seconds 120 from 30 seed 1 jitter_s 0.0005 rap_jitter 0.2 tcp_tick 0.1 fine 0
         tcp_jitter 1.0 flavour sack starts_s 1.0 initial_window 2 limited_transmit 1 initial_rto 1.0 min_rto 0.2
         red 0 min_threshold 5 max_threshold 60 max_p 0.02 weight 0.002 wait 0}

ns-random $opt(seed)
set start_rng [new RNG]
$start_rng seed $opt(seed)
set ns [new Simulator]
# 40 B of header come on top of a TCP packet.
Agent/TCP set packetSize_ [expr {$opt(packet_bytes) - 40}]
Agent/TCP set window_ 1000
Agent/TCP set tcpTick_ $opt(tcp_tick)
Agent/TCP set syn_ false
Agent/TCP set windowInit_ $opt(initial_window)
Agent/TCP set singledup_ $opt(limited_transmit)
Agent/TCP set rtxcur_init_ $opt(initial_rto)
Agent/TCP set minrto_ $opt(min_rto)
# Up to so much is added to the time of each sending: without it drop-tail queues lock phases.
Agent/TCP set overhead_ [expr {$opt(tcp_jitter) * $opt(jitter_s)}]
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
$ns simplex-link $s2 $s1 $opt(rate_bps) $opt(delay_ms)ms DropTail
if {$opt(red)} {
    # Floyd and Jacobson 1993: packets, no gentle slope. wait 0: drops up to 1/p packets apart, as in their paper.
    Queue/RED set bytes_ false
    Queue/RED set queue_in_bytes_ false
    Queue/RED set gentle_ false
    Queue/RED set use_mark_p_ false
    Queue/RED set wait_ $opt(wait)
    Queue/RED set adaptive_ 0
    Queue/RED set cautious_ 0
    Queue/RED set setbit_ false
    Queue/RED set drop_tail_ true
    Queue/RED set mean_pktsize_ $opt(packet_bytes)
    Queue/RED set thresh_ $opt(min_threshold)
    Queue/RED set maxthresh_ $opt(max_threshold)
    Queue/RED set linterm_ [expr {1.0 / $opt(max_p)}]
    Queue/RED set q_weight_ $opt(weight)
    $ns simplex-link $s1 $s2 $opt(rate_bps) $opt(delay_ms)ms RED
    # RED's limit does not count the packet in service.
    $ns queue-limit $s1 $s2 $opt(buffer_packets)
} else {
    $ns simplex-link $s1 $s2 $opt(rate_bps) $opt(delay_ms)ms DropTail
    # ns-2 holds one packet less than the limit beside the one in service.
    $ns queue-limit $s1 $s2 [expr {$opt(buffer_packets) + 1}]
}
$ns queue-limit $s2 $s1 10000
set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $s1 $s2] $monitor
set waiting [new Integrator]
$monitor set-pkts-integrator $waiting
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
set senders {}
for {set i 0} {$i < $opt(adaptive) + $opt(sacks)} {incr i} {
    lassign [ends] a b
    set at [expr {3.0 + [$start_rng uniform 0.0 $opt(starts_s)]}]
    if {$i >= $opt(adaptive)} {
        lassign [make_flow $ns $a $b $opt(flavour) $i 0] tcp sink ftp
        lappend senders $tcp
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

# The queue's mean over each 0.2 s, and what TCP has on the way, from the window's begin on.
set lengths {}
set outstanding {}
proc sample {before} {
    global ns waiting monitor lengths senders outstanding
    $waiting newpoint [$ns now] [$monitor set pkts_]
    set sum [$waiting set sum_]
    if {$before >= 0} { lappend lengths [expr {($sum - $before) / 0.2}] }
    foreach tcp $senders { lappend outstanding [expr {[$tcp set maxseq_] - [$tcp set ack_]}] }
    $ns at [expr {[$ns now] + 0.2}] "sample $sum"
}
$ns at [expr {3 + $opt(from)}] {sample -1}
proc mean {values} { expr {[llength $values] ? [tcl::mathop::+ {*}$values] / double([llength $values]) : 0.0} }
proc deviation {values} {
    set m [mean $values]
    set squares {}
    foreach v $values { lappend squares [expr {($v - $m) ** 2}] }
    expr {sqrt([mean $squares])}
}

proc bytes {} {
    global monitor
    set result {}
    foreach flow [$monitor flows] { lappend result [$flow set flowid_] [$flow set bdepartures_] }
    return $result
}
$ns at [expr {3 + $opt(from)}] {array set before [bytes]}
proc finish {} {
    global monitor before opt frozen back senders lengths outstanding
    array set after [bytes]
    foreach fid [lsort -integer [array names after]] {
        set earlier [expr {[info exists before($fid)] ? $before($fid) : 0}]
        puts "flow $fid [expr {8 * ($after($fid) - $earlier) / double($opt(seconds) - $opt(from))}]"
    }
    set timeouts 0
    set cuts 0
    foreach tcp $senders {
        incr timeouts [$tcp set nrexmit_]
        incr cuts [$tcp set ncwndcuts1_]
    }
    puts "queue [mean $lengths] deviation [deviation $lengths] outstanding [mean $outstanding] timeouts $timeouts cuts $cuts"
    puts "drops [$monitor set pdrops_] departures [$monitor set pdepartures_] back [$back set pdepartures_] frozen $frozen"
    exit 0
}
$ns at [expr {3 + $opt(seconds)}] finish
$ns run
