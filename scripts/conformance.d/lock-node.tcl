# What Redis's harness is taught for a lock node; scripts/conformance reads it in after the harness's own test.tcl, and
# writes two lists beside it: the tests that are left out, and the commands of Redis that the server has not.

proc lines_of {path} {
    set file [open $path]
    fconfigure $file -encoding utf-8
    set lines [split [read $file] "\n"]
    close $file
    return $lines
}
set ::left_out [lines_of left-out]
set ::absent [lines_of absent]

# Some tests have one name: the second is known by a number.
set ::times_named [dict create]
set ::in_test 0
rename ::test ::test_of_redis
proc ::test {name code args} {
    dict incr ::times_named $name
    set times [dict get $::times_named $name]
    if {$times > 1} {append name " ($times)"}
    if {$name in $::left_out} return
    set ::in_test 1
    set failed_before $::num_failed
    catch {uplevel 1 [list ::test_of_redis $name $code {*}$args]} result options
    set ::in_test 0
    if {$::num_failed > $failed_before} end_what_goes_on
    return -options $options $result
}

# A test that failed half way leaves its protocol, a transaction, clients that wait, and a script.
proc end_what_goes_on {} {
    catch {r readraw 0}
    catch {r discard}
    catch {r script kill}
    catch {
        foreach client [split [r client list] "\n"] {
            if {[regexp {^id=(\d+) .* flags=\w*b} $client - id]} {catch {r client kill id $id}}
        }
    }
}

# A test ends at its first command that the server has not, so that it does not wait for what that would do. Redis's tests set
# how its values are encoded, and some need a command between two of them that a node has not, which would end the file: a node
# that has no such options is taken to have set them, and outside a test nothing is an error.
rename ::redis::__dispatch__ ::redis::__dispatch_of_redis__
proc ::redis::__dispatch__ {id method args} {
    if {$::in_test} {
        set commands [list $method "$method|[lindex $args 0]"]
        if {[string match -nocase {eval*} $method]} {
            foreach {- command} [regexp -all -inline {redis\.p?call\(\s*['"](\w+)} [lindex $args 0]] {lappend commands $command}
        }
        foreach command $commands {
            if {[string tolower $command] in $::absent} {error "ERR unknown command '$command'"}
        }
    }
    set failed [catch {::redis::__dispatch_of_redis__ $id $method {*}$args} reply]
    if {!$failed} {return $reply}
    set text "$method $args $reply"
    if {[string match -nocase {config set*Unknown option*} $text]
        && ([regexp {listpack|ziplist|intset|list-compress|lazyfree} [lindex $args 1]] || !$::in_test)} {
        return OK
    }
    if {[string match {*unknown command*} $reply] && !$::in_test} {return 0}
    return -code $failed $reply
}
