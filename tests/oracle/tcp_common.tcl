# Settings shared by the TCP runs: everything whose default in ns-2 differs from what Fairlane's endpoints are told.
# Options come as "name value" pairs on the command line.

proc options {defaults} {
    global argv opt
    array set opt $defaults
    foreach {name value} $argv {
        if {![info exists opt($name)]} { error "unknown option $name; known: [lsort [array names opt]]" }
        set opt($name) $value
    }
}

# 960 B of payload and the 40 B header that ns-2 adds make 1000 B on the wire.
Agent/TCP set packetSize_ 960
# In packets; the default of 20 would be the bottleneck.
Agent/TCP set window_ 10000
Agent/TCP set windowInit_ 2
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP/Linux set minrto_ 0.2
Agent/TCP/Linux set maxrto_ 60
Agent/TCP/Linux set rtxcur_init_ 1.0
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 1.0
Agent/TCP set overhead_ 0
Agent/TCP set timestamps_ false
# limited transmit, RFC 3042
Agent/TCP set singledup_ 1
Agent/TCP set syn_ true
# RFC 6582: deflation at a partial ACK, no burst at the end of recovery, one timer restart per recovery
Agent/TCP/Newreno set partial_window_deflation_ 1
Agent/TCP/Newreno set exit_recovery_fix_ 1
Agent/TCP/Newreno set newreno_changes1_ 1

# A sender, its sink and its FTP source. CUBIC is ns-2's port of Linux's (2.6), with RFC 9438's beta: 717/1024 = 0.7.
proc make_flow {ns from to flavour fid delayed_ack} {
    switch $flavour {
        tahoe   { set tcp [new Agent/TCP] ;         set sink [new Agent/TCPSink] }
        reno    { set tcp [new Agent/TCP/Reno] ;    set sink [new Agent/TCPSink] }
        newreno { set tcp [new Agent/TCP/Newreno] ; set sink [new Agent/TCPSink] }
        sack    { set tcp [new Agent/TCP/Sack1] ;   set sink [new Agent/TCPSink/Sack1] }
        cubic   { set tcp [new Agent/TCP/Linux] ;   set sink [new Agent/TCPSink/Sack1] }
        default { error "unknown flavour $flavour" }
    }
    if {$delayed_ack} {
        delete $sink
        set sink [new [expr {$flavour in {sack cubic} ? "Agent/TCPSink/Sack1/DelAck" : "Agent/TCPSink/DelAck"}]]
        $sink set interval_ 100ms
    }
    $tcp set fid_ $fid
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    if {$flavour == "cubic"} {
        $ns at 0.0 "$tcp select_ca cubic"
        $ns at 0.0 "$tcp set_ca_param cubic beta 717"
        $ns at 0.0 "$tcp set_ca_param cubic tcp_friendliness 1"
    }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    return [list $tcp $sink $ftp]
}

# Follows the bottleneck's queue: its length over time, and each drop's instant and flow (on stdout, as "drop INSTANT FLOW").
proc watch_bottleneck {ns from to} {
    global monitor drops
    set drops [open "|awk {/^d/ {print \"drop\", \$2, \$8}} >@stdout" w]
    $ns trace-queue $from $to $drops
    set monitor [$ns monitor-queue $from $to ""]
}

proc bottleneck_results {seconds} {
    global monitor drops ns
    $ns flush-trace
    close $drops
    set integral [$monitor get-pkts-integrator]
    $integral newpoint $seconds [$monitor set pkts_]
    return [list drops [$monitor set pdrops_] mean_queue [expr {[$integral set sum_] / $seconds}]]
}
