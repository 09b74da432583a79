"use strict";(self.rspackChunkjupyter_gpubroker=self.rspackChunkjupyter_gpubroker||[]).push([[700],{135(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=(e.n(a))()(p());i.push([o.id,`/* What one holds or waits for. */

.gpb-Cards {
  display: flex;
  flex-direction: column;
  gap: 8px;
}

.gpb-Card {
  padding: 8px 10px 10px;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  border-radius: calc(2 * var(--jp-border-radius));
  background: var(--jp-layout-color1);
}

.gpb-Card.gpb-mod-current {
  border-color: var(--jp-brand-color1);
}

.gpb-Card.gpb-mod-noticed {
  border-color: var(--jp-warn-color1);
  box-shadow: inset 3px 0 0 var(--jp-warn-color1);
}

.gpb-Card-header {
  display: flex;
  gap: 8px;
  align-items: baseline;
  justify-content: space-between;
}

.gpb-Panel .gpb-Card-header h3 {
  min-width: 0;
  font-weight: 600;
}

.gpb-Card-device {
  flex: none;
  max-width: 55%;
  overflow: hidden;
  color: var(--jp-ui-font-color2);
  text-overflow: ellipsis;
  white-space: nowrap;
}

.gpb-Card-state {
  display: flex;
  gap: 8px;
  align-items: center;
  justify-content: space-between;
  min-height: 24px;
  font-variant-numeric: tabular-nums;
}

.gpb-Card-state .gpb-Action {
  margin-right: -4px;
  padding: 0 4px;
  color: var(--jp-ui-font-color2);
}

.gpb-Dot {
  display: inline-block;
  width: 8px;
  height: 8px;
  margin-right: 6px;
  border-radius: 50%;
}

.gpb-Dot.gpb-mod-active {
  background: var(--jp-success-color1);
}

.gpb-Dot.gpb-mod-quiet {
  box-shadow: inset 0 0 0 2px var(--jp-ui-font-color3);
}

.gpb-Dot.gpb-mod-parked {
  border-radius: 2px;
  background: var(--jp-ui-font-color3);
}

.gpb-Dot.gpb-mod-moving {
  box-shadow: inset 0 0 0 2px var(--jp-brand-color1);
}

.gpb-Card-countdown {
  font-size: var(--jp-ui-font-size2);
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}

.gpb-Card-curves {
  margin-top: 2px;
}

.gpb-Sparkline {
  display: grid;
  grid-template-columns: 4.5em minmax(0, 1fr) 4.5em;
  gap: 6px;
  align-items: end;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  white-space: nowrap;
}

.gpb-Sparkline + .gpb-Sparkline {
  margin-top: 4px !important;
}

.gpb-Sparkline svg {
  display: block;
  width: 100%;
  height: 20px;
  border-bottom: 1px solid var(--jp-border-color2);
}

.gpb-Sparkline .gpb-Number {
  text-align: right;
}

.gpb-Sparkline-line {
  fill: none;
  stroke: var(--jp-brand-color1);
  stroke-width: 1.5;
  stroke-linejoin: round;
}

.gpb-Sparkline-area {
  fill: var(--jp-brand-color1);
  opacity: 0.12;
}

.gpb-Panel .gpb-Card-facts {
  margin-top: 6px;
  color: var(--jp-ui-font-color2);
  overflow-wrap: anywhere;
}

.gpb-Card-left {
  display: block;
}

.gpb-Why {
  margin-top: 8px;
  padding-top: 8px;
  border-top: var(--jp-border-width) solid var(--jp-border-color2);
  overflow-wrap: anywhere;
}

.gpb-Why ol {
  max-height: 18em;
  overflow-y: auto;
}

.gpb-Why li {
  display: grid;
  grid-template-columns: max-content minmax(0, 1fr);
  gap: 8px;
  margin-top: 4px;
  color: var(--jp-ui-font-color2);
}

.gpb-Why time {
  font-variant-numeric: tabular-nums;
}
`,""]),e.d(r,{},{A:i})},194(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=(e.n(a))()(p());i.push([o.id,`/* How things stand, in a notebook's toolbar and in the status bar. */

.gpb-ToolbarChip,
.gpb-StatusItem {
  display: flex;
  align-items: center;
}

.gpb-Chip {
  display: inline-flex;
  gap: 4px;
  align-items: center;
  font-size: var(--jp-ui-font-size1);
  white-space: nowrap;
}

.gpb-Chip-button {
  display: inline-flex;
  align-items: center;
  max-width: 22em;
  height: 24px;
  padding: 0 8px;
  border: 0;
  border-radius: var(--jp-border-radius);
  background: transparent;
  color: var(--jp-ui-font-color1);
  font-family: inherit;
  font-size: inherit;
  font-variant-numeric: tabular-nums;
  cursor: pointer;
}

.gpb-Chip-button:hover {
  background: var(--jp-layout-color2);
}

.gpb-Chip .gpb-Action {
  height: 22px;
}

.gpb-Chip-mark {
  flex: none;
  width: 8px;
  height: 8px;
  margin-right: 6px;
  border-radius: 50%;
  box-shadow: inset 0 0 0 2px var(--jp-ui-font-color3);
}

.gpb-Chip.gpb-mod-active .gpb-Chip-mark {
  background: var(--jp-success-color1);
  box-shadow: none;
}

.gpb-Chip.gpb-mod-waits .gpb-Chip-mark,
.gpb-Chip.gpb-mod-granted .gpb-Chip-mark,
.gpb-Chip.gpb-mod-draining .gpb-Chip-mark {
  box-shadow: inset 0 0 0 2px var(--jp-brand-color1);
}

.gpb-Chip.gpb-mod-parked .gpb-Chip-mark {
  border-radius: 2px;
  background: var(--jp-ui-font-color3);
}

.gpb-Chip.gpb-mod-noticed .gpb-Chip-mark,
.gpb-Chip.gpb-mod-trouble .gpb-Chip-mark {
  background: var(--jp-warn-color1);
  box-shadow: none;
}

.gpb-Chip.gpb-mod-noticed .gpb-Chip-button {
  font-weight: 600;
}

/* In the status bar: as flat as its neighbours. */

.gpb-StatusItem .gpb-Chip-button {
  height: 100%;
  border-radius: 0;
}

.gpb-StatusItem .gpb-Chip-button:hover {
  background: var(--jp-layout-color3);
}

.gpb-StatusItem .gpb-Chip,
.gpb-StatusItem > * {
  height: 100%;
}

.gpb-StatusItem .gpb-Action {
  height: 18px;
}

/* Above a notebook. Its box layout reads the height from here. */

.gpb-Strip {
  min-height: 34px;
  overflow: auto;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  background: var(--jp-layout-color2);
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1);
}

.gpb-Strip-body {
  display: flex;
  gap: 8px;
  align-items: center;
  min-height: 34px;
  padding: 0 12px;
}

.gpb-Strip-body > .gpb-Dot {
  flex: none;
  margin: 0;
}
`,""]),e.d(r,{},{A:i})},646(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=e.n(a),n=e(724),l=e(135),d=e(870),b=e(908),g=e(194),c=i()(p());c.i(n.A),c.i(l.A),c.i(d.A),c.i(b.A),c.i(g.A),c.push([o.id,`
`,""]),e.d(r,{},{A:c})},908(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=(e.n(a))()(p());i.push([o.id,`/* Batch jobs: their rows in the panel, and what they write. */

.gpb-Job {
  padding: 6px 0;
}

.gpb-Job + .gpb-Job {
  border-top: var(--jp-border-width) solid var(--jp-border-color3);
}

.gpb-Job.gpb-mod-over .gpb-Job-name {
  color: var(--jp-ui-font-color2);
}

.gpb-Job-name {
  display: flex;
  gap: 6px;
  min-width: 0;
}

.gpb-Job-device {
  flex: none;
  margin-left: auto;
  color: var(--jp-ui-font-color2);
}

.gpb-Job .gpb-Row-detail {
  display: block;
}

.gpb-Job-actions {
  display: flex;
  flex-wrap: wrap;
  gap: 2px;
  margin-left: -8px;
}

.gpb-Job-actions .gpb-Action {
  padding: 0 8px;
  color: var(--jp-ui-font-color2);
}

.gpb-JobForm {
  padding-bottom: 8px;
}

.gpb-Output {
  min-height: 200px;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1);
  line-height: 1.4;
}

.gpb-Output-body {
  display: flex;
  box-sizing: border-box;
  flex-direction: column;
  gap: 8px;
  height: 100%;
  padding: 8px 12px;
}

.gpb-Output p {
  margin: 0;
}

.gpb-Output-header {
  display: flex;
  flex: none;
  gap: 8px;
  align-items: baseline;
}

.gpb-Output-header .gpb-Name {
  flex: none;
  max-width: 40%;
  font-weight: 600;
}

.gpb-Output-sentence {
  flex: 1;
  min-width: 0;
  color: var(--jp-ui-font-color2);
  overflow-wrap: anywhere;
}

.gpb-Stream {
  display: flex;
  flex: 1;
  flex-direction: column;
  min-height: 60px;
}

.gpb-Stream h2 {
  flex: none;
  margin: 0 0 4px;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  font-weight: 600;
}

.gpb-Stream pre {
  flex: 1;
  min-height: 0;
  margin: 0;
  overflow: auto;
  padding: 6px 8px;
  border: var(--jp-border-width) solid var(--jp-border-color2);
  background: var(--jp-layout-color0);
  color: var(--jp-ui-font-color0);
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
  line-height: var(--jp-code-line-height);
  overflow-wrap: anywhere;
  white-space: pre-wrap;
}
`,""]),e.d(r,{},{A:i})},724(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=(e.n(a))()(p());i.push([o.id,`/* The side bar's panel and what all of its parts share. Colours and sizes are JupyterLab's, so themes apply. */

.gpb-Panel {
  min-width: var(--jp-sidebar-min-width);
  overflow: hidden auto;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font-size: var(--jp-ui-font-size1);
  line-height: 1.4;
}

.gpb-Panel-body > .gpb-Section,
.gpb-Panel-body > [role='status'] {
  transition: opacity 0.2s;
}

.gpb-Panel-body.gpb-mod-stale > .gpb-Section {
  opacity: 0.75;
}

.gpb-Panel p,
.gpb-Panel ul,
.gpb-Panel ol,
.gpb-Panel dl,
.gpb-Panel dd,
.gpb-Panel h2,
.gpb-Panel h3,
.gpb-Panel figure {
  margin: 0;
  padding: 0;
  font-size: inherit;
  font-weight: inherit;
}

.gpb-Panel ul,
.gpb-Panel ol {
  list-style: none;
}

.gpb-Panel code {
  padding: 0 3px;
  border-radius: var(--jp-border-radius);
  background: var(--jp-layout-color2);
  color: inherit;
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
}

/* Names are other people's: never wider than their place. */
.gpb-Name {
  display: inline-block;
  max-width: 100%;
  overflow: hidden;
  vertical-align: bottom;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.gpb-Number {
  font-variant-numeric: tabular-nums;
}

.gpb-Empty {
  color: var(--jp-ui-font-color2);
}

.gpb-Banner {
  padding: 8px 12px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  border-left: 3px solid var(--jp-warn-color1);
  background: var(--jp-layout-color2);
  overflow-wrap: anywhere;
}

.gpb-Refused:empty {
  display: none;
}

.gpb-Refused {
  margin-top: 6px !important;
  padding-left: 8px !important;
  border-left: 2px solid var(--jp-error-color1);
  overflow-wrap: anywhere;
}

/* --- sections --- */

.gpb-Section {
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
}

.gpb-Section-title > button {
  display: flex;
  align-items: center;
  width: 100%;
  height: 28px;
  padding: 0 12px 0 4px;
  border: 0;
  background: transparent;
  color: var(--jp-ui-font-color1);
  font-family: inherit;
  font-size: var(--jp-ui-font-size0);
  font-weight: 600;
  letter-spacing: 0.5px;
  text-align: left;
  cursor: pointer;
}

.gpb-Section-title > button:hover {
  background: var(--jp-layout-color2);
}

.gpb-Section-caret {
  display: flex;
}

.gpb-Section-caret svg {
  width: 16px;
  height: 16px;
}

.gpb-Section-name {
  margin-left: 2px;
  text-transform: uppercase;
}

.gpb-Section-aside {
  margin-left: auto;
  color: var(--jp-ui-font-color2);
  font-weight: 400;
  font-variant-numeric: tabular-nums;
  letter-spacing: 0;
}

.gpb-Section-body {
  padding: 2px 12px 12px;
}

.gpb-Section-body[hidden] {
  display: none;
}

/* --- buttons and fields --- */

.gpb-Action {
  flex: none;
  height: 24px;
  padding: 0 9px;
  border: var(--jp-border-width) solid var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-family: inherit;
  font-size: var(--jp-ui-font-size1);
  line-height: 1;
  cursor: pointer;
}

.gpb-Action:hover {
  background: var(--jp-layout-color2);
}

.gpb-Action.gpb-mod-primary {
  border-color: var(--jp-accept-color-normal, var(--jp-brand-color1));
  background: var(--jp-accept-color-normal, var(--jp-brand-color1));
  color: white;
}

.gpb-Action.gpb-mod-primary:hover {
  border-color: var(--jp-accept-color-hover, var(--jp-brand-color0));
  background: var(--jp-accept-color-hover, var(--jp-brand-color0));
}

.gpb-Action.gpb-mod-quiet {
  border-color: transparent;
  background: transparent;
}

.gpb-Action.gpb-mod-quiet:hover {
  background: var(--jp-layout-color2);
}

.gpb-Action[aria-disabled='true'],
.gpb-Action:disabled {
  opacity: 0.55;
  cursor: default;
}

.gpb-Panel button:focus-visible,
.gpb-Input:focus-visible,
.gpb-Chip button:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 1px;
}

.gpb-Section-title > button:focus-visible {
  outline-offset: -2px;
}

.gpb-Actions {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
  margin-top: 8px;
}

.gpb-Form label {
  display: grid;
  grid-template-columns: 5em minmax(0, 1fr);
  align-items: center;
  margin-top: 6px;
}

.gpb-Form label > span,
.gpb-Form-for > span {
  color: var(--jp-ui-font-color2);
}

.gpb-Form-for {
  display: grid;
  grid-template-columns: 5em minmax(0, 1fr);
}

.gpb-Form .gpb-Form-measure {
  display: flex;
  gap: 6px;
  align-items: center;
}

.gpb-Form-outlook {
  margin-top: 8px !important;
  color: var(--jp-ui-font-color2);
}

.gpb-Input {
  box-sizing: border-box;
  width: 100%;
  min-width: 0;
  height: 26px;
  padding: 0 6px;
  border: var(--jp-border-width) solid var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color0);
  font-family: inherit;
  font-size: var(--jp-ui-font-size1);
}

/* --- rows: the line, jobs --- */

.gpb-Row {
  display: flex;
  gap: 8px;
  align-items: flex-start;
  padding: 5px 0;
}

.gpb-Row + .gpb-Row {
  border-top: var(--jp-border-width) solid var(--jp-border-color3);
}

.gpb-Row-main {
  display: flex;
  flex: 1;
  flex-direction: column;
  min-width: 0;
}

.gpb-Row-side {
  display: flex;
  flex: none;
  flex-direction: column;
  align-items: flex-end;
}

.gpb-Row-detail {
  overflow: hidden;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
  text-overflow: ellipsis;
  white-space: nowrap;
}

.gpb-Row-detail.gpb-mod-wraps {
  overflow-wrap: anywhere;
  white-space: normal;
}

.gpb-Form-check {
  display: flex !important;
  gap: 6px;
  align-items: flex-start !important;
  min-width: 0;
}

.gpb-Form-check input {
  flex: none;
  margin: 2px 0 0;
}

.gpb-Form-check > span {
  min-width: 0;
}

.gpb-Form-what {
  min-width: 0;
  margin: 0;
  padding: 0;
  border: 0;
}

.gpb-Form-what legend {
  padding: 0;
  color: var(--jp-ui-font-color2);
}

.gpb-Input.gpb-mod-code {
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
}

.gpb-Elsewhere {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 8px;
  align-items: center;
  justify-content: space-between;
  margin-top: 6px !important;
  color: var(--jp-ui-font-color2);
}
`,""]),e.d(r,{},{A:i})},870(o,r,e){var t=e(601),p=e.n(t),a=e(314),i=(e.n(a))()(p());i.push([o.id,`/* GPUs and their slices, to scale. Looks differ by more than colour. */

.gpb-Pool {
  display: flex;
  flex-direction: column;
  gap: 8px;
}

.gpb-Gpu {
  content-visibility: auto;
  contain-intrinsic-size: auto 40px;
}

.gpb-Gpu-header {
  display: flex;
  gap: 8px;
  align-items: baseline;
  justify-content: space-between;
}

.gpb-Gpu-name {
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.gpb-Gpu-header > .gpb-Number {
  flex: none;
}

.gpb-Gpu-slots {
  display: flex;
  gap: 2px;
  height: 18px;
  margin-top: 2px;
}

.gpb-Slot {
  position: relative;
  box-sizing: border-box;
  flex: 1 1 0;
  min-width: 3px;
  overflow: hidden;
  border: 1px solid var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  background: var(--jp-layout-color1);
}

.gpb-Slot-used {
  position: absolute;
  inset: 0;
  transform-origin: left;
  background: var(--jp-ui-font-color3);
  opacity: 0.55;
}

.gpb-Slot-profile {
  position: relative;
  display: block;
  overflow: hidden;
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size0);
  line-height: 16px;
  text-align: center;
}

.gpb-Slot.gpb-mod-mine {
  border: 2px solid var(--jp-brand-color1);
}

.gpb-Slot.gpb-mod-mine .gpb-Slot-used {
  background: var(--jp-brand-color1);
}

.gpb-Slot.gpb-mod-mine .gpb-Slot-profile {
  line-height: 14px;
}

.gpb-Slot.gpb-mod-taken {
  background: repeating-linear-gradient(
    135deg,
    var(--jp-layout-color3) 0 3px,
    var(--jp-layout-color2) 3px 6px
  );
}

.gpb-Slot.gpb-mod-clearing {
  border-style: dashed;
}

.gpb-Slot.gpb-mod-unusable {
  border-color: var(--jp-error-color1);
  background: repeating-linear-gradient(
    45deg,
    var(--jp-error-color3) 0 2px,
    var(--jp-layout-color1) 2px 6px
  );
}

.gpb-Pool-note {
  margin-top: 8px !important;
  color: var(--jp-ui-font-color2);
}

.gpb-Legend {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 12px;
  margin-top: 8px !important;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.gpb-Legend li {
  display: flex;
  gap: 5px;
  align-items: center;
}

.gpb-Legend .gpb-Slot {
  flex: none;
  width: 14px;
  height: 10px;
}
`,""]),e.d(r,{},{A:i})},314(o){o.exports=function(o){var r=[];return r.toString=function(){return this.map(function(r){var e="",t=void 0!==r[5];return r[4]&&(e+="@supports (".concat(r[4],") {")),r[2]&&(e+="@media ".concat(r[2]," {")),t&&(e+="@layer".concat(r[5].length>0?" ".concat(r[5]):""," {")),e+=o(r),t&&(e+="}"),r[2]&&(e+="}"),r[4]&&(e+="}"),e}).join("")},r.i=function(o,e,t,p,a){"string"==typeof o&&(o=[[null,o,void 0]]);var i={};if(t)for(var n=0;n<this.length;n++){var l=this[n][0];null!=l&&(i[l]=!0)}for(var d=0;d<o.length;d++){var b=[].concat(o[d]);t&&i[b[0]]||(void 0!==a&&(void 0===b[5]||(b[1]="@layer".concat(b[5].length>0?" ".concat(b[5]):""," {").concat(b[1],"}")),b[5]=a),e&&(b[2]&&(b[1]="@media ".concat(b[2]," {").concat(b[1],"}")),b[2]=e),p&&(b[4]?(b[1]="@supports (".concat(b[4],") {").concat(b[1],"}"),b[4]=p):b[4]="".concat(p)),r.push(b))}},r}},601(o){o.exports=function(o){return o[1]}},72(o){var r=[];function e(o){for(var e=-1,t=0;t<r.length;t++)if(r[t].identifier===o){e=t;break}return e}function t(o,t){for(var p={},a=[],i=0;i<o.length;i++){var n=o[i],l=t.base?n[0]+t.base:n[0],d=p[l]||0,b="".concat(l," ").concat(d);p[l]=d+1;var g=e(b),c={css:n[1],media:n[2],sourceMap:n[3],supports:n[4],layer:n[5]};if(-1!==g)r[g].references++,r[g].updater(c);else{var s=function(o,r){var e=r.domAPI(r);return e.update(o),function(r){r?(r.css!==o.css||r.media!==o.media||r.sourceMap!==o.sourceMap||r.supports!==o.supports||r.layer!==o.layer)&&e.update(o=r):e.remove()}}(c,t);t.byIndex=i,r.splice(i,0,{identifier:b,updater:s,references:1})}a.push(b)}return a}o.exports=function(o,p){var a=t(o=o||[],p=p||{});return function(o){o=o||[];for(var i=0;i<a.length;i++){var n=e(a[i]);r[n].references--}for(var l=t(o,p),d=0;d<a.length;d++){var b=e(a[d]);0===r[b].references&&(r[b].updater(),r.splice(b,1))}a=l}}},659(o){var r={};o.exports=function(o,e){var t=function(o){if(void 0===r[o]){var e=document.querySelector(o);if(window.HTMLIFrameElement&&e instanceof window.HTMLIFrameElement)try{e=e.contentDocument.head}catch(o){e=null}r[o]=e}return r[o]}(o);if(!t)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");t.appendChild(e)}},540(o){o.exports=function(o){var r=document.createElement("style");return o.setAttributes(r,o.attributes),o.insert(r,o.options),r}},56(o,r,e){o.exports=function(o){var r=e.nc;r&&o.setAttribute("nonce",r)}},206(o){o.exports=function(o){if("u"<typeof document)return{update:function(){},remove:function(){}};var r=o.insertStyleElement(o);return{update:function(e){var t,p,a;t="",e.supports&&(t+="@supports (".concat(e.supports,") {")),e.media&&(t+="@media ".concat(e.media," {")),(p=void 0!==e.layer)&&(t+="@layer".concat(e.layer.length>0?" ".concat(e.layer):""," {")),t+=e.css,p&&(t+="}"),e.media&&(t+="}"),e.supports&&(t+="}"),(a=e.sourceMap)&&"u">typeof btoa&&(t+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(a))))," */")),o.styleTagTransform(t,r,o.options)},remove:function(){var o;null===(o=r).parentNode||o.parentNode.removeChild(o)}}}},113(o){o.exports=function(o,r){if(r.styleSheet)r.styleSheet.cssText=o;else{for(;r.firstChild;)r.removeChild(r.firstChild);r.appendChild(document.createTextNode(o))}}},959(o,r,e){var t=e(72),p=e.n(t),a=e(206),i=e.n(a),n=e(659),l=e.n(n),d=e(56),b=e.n(d),g=e(540),c=e.n(g),s=e(113),u=e.n(s),f=e(646),h={};h.styleTagTransform=u(),h.setAttributes=b(),h.insert=l().bind(null,"head"),h.domAPI=i(),h.insertStyleElement=c(),p()(f.A,h),f.A&&f.A.locals&&f.A.locals}}]);