'use strict';
console.log('about to fail');
throw new Error('the database is on fire');
