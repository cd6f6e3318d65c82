/* A banner */
#ifndef _X_
#define _X_
# define DEEP 1
#include   "x.p4"
  #define INDENTED(a,b)  a##b
#pragma once upon
   # a remark that p4c's preprocessor passes over: don't mind

// Goes on here \
   and here
@pragma   keep   this { line (
@name ( "a  b" )
const bit<8>  ONE=1 ;
#if DEEP==1
control c( inout bit<8>a
#ifdef MORE
   ,inout bit<8> b
#endif
) {
apply {
    if ( a==ONE )
#else
control c(inout bit<8> a) { apply {
    if (a!=ONE)
#endif
    { a=2; }
    else
    // why not
    { a=3; }
    ENTRY
    CALL(a,
     ONE)
    a = a+
       ONE;



    a = (a == 1 && a < 2) ? 8w1:-8w1; // last
}}
#endif
