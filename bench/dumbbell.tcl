# The scenario of virtual.py for ns-2: SACK flows over one bottleneck with RED. Prints link traversals.
#   ns dumbbell.tcl FLOWS MBPS SECONDS
lassign $argv flows mbps seconds
set ns [new Simulator]
set packets [expr {max(20, round($mbps * 1e6 * 0.1 / 8000))}]
Queue/RED set gentle_ false
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set thresh_ [expr {0.25 * $packets}]
Queue/RED set maxthresh_ [expr {0.75 * $packets}]
Agent/TCP set window_ 4000
Agent/TCP set packetSize_ 948
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb 10ms RED
$ns queue-limit $left $right $packets
set there [$ns monitor-queue $left $right ""]
set back [$ns monitor-queue $right $left ""]
for {set i 0} {$i < $flows} {incr i} {
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $left [expr {10 * $mbps}]Mb 1ms DropTail
    $ns duplex-link $b $right [expr {10 * $mbps}]Mb 1ms DropTail
    $ns queue-limit $a $left 1000
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $a $tcp
    $ns attach-agent $b $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {0.001 * $i}] "$ftp start"
}
$ns at $seconds "finish"
proc finish {} {
    global there back
    # Each packet that leaves the bottleneck crosses an access link before it and one after it.
    puts [expr {3 * ([$there set pdepartures_] + [$back set pdepartures_])}]
    exit 0
}
$ns run
